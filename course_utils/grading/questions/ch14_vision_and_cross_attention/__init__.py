"""The questions of `exercises/14_vision_and_cross_attention.ipynb`."""
