"""The questions of `exercises/07_permutation_equivariance.ipynb`."""
