"""The grammar that writes English sentences with their French translations."""
