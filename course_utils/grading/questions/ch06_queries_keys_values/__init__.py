"""The questions of `exercises/06_queries_keys_values.ipynb`."""
