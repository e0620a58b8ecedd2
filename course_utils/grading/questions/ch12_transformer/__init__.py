"""The questions of `exercises/12_transformer.ipynb`."""
