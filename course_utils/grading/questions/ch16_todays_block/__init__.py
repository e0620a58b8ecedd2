"""The questions of `exercises/16_todays_block.ipynb`."""
