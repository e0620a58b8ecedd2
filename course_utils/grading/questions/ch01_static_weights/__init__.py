"""The questions of `exercises/01_static_weights.ipynb`."""
