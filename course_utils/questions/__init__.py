"""The graded questions, one module for each chapter."""
