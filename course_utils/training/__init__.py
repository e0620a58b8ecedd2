"""The training loop and what it needs: batches, checkpoints, history, precision."""
