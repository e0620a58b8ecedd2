"""What a reader sees: figures, interactives, the model that runs in the page."""
