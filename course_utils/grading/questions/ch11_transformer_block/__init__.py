"""The questions of `exercises/11_transformer_block.ipynb`."""
