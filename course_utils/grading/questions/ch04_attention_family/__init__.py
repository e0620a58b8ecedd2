"""The questions of `exercises/04_attention_family.ipynb`."""
