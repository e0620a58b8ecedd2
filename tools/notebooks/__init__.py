"""What reads, runs and normalises the notebooks."""
