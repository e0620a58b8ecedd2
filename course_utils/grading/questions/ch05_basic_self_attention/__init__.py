"""The questions of `exercises/05_basic_self_attention.ipynb`."""
