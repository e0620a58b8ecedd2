"""What the models are asked to learn, and what can be had without learning."""
