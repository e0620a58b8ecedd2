"""What a trained model does: decode, measure, test for leaks, switch parts off."""
