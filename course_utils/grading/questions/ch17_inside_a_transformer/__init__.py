"""The questions of `exercises/17_inside_a_transformer.ipynb`."""
