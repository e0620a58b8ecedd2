"""From an answer to its points: questions, checks, and the grading of a class."""
