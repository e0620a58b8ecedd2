"""The questions of `exercises/02_seq2seq_bottleneck.ipynb`."""
