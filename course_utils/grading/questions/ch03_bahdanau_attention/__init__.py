"""The questions of `exercises/03_bahdanau_attention.ipynb`."""
