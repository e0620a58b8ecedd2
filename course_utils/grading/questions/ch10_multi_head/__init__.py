"""The questions of `exercises/10_multi_head.ipynb`."""
