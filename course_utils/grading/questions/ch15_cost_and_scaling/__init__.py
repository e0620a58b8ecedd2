"""The questions of `exercises/15_cost_and_scaling.ipynb`."""
