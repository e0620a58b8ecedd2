"""The questions of `exercises/09_masking.ipynb`."""
