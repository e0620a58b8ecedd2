"""The questions of `exercises/13_decoder_only.ipynb`."""
