"""The questions of `exercises/18_pretrain_and_adapt.ipynb`."""
