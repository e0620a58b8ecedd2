"""Grade a whole class: find submissions, run them, write the tables."""
