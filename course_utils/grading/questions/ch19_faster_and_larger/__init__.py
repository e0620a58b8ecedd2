"""The questions of `exercises/19_faster_and_larger.ipynb`."""
