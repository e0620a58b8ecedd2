"""The questions of `exercises/08_positional_encodings.ipynb`."""
