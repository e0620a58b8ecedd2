"""The models that the chapters build, from one attention to the whole transformer."""
