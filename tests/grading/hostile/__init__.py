"""Submissions that attack the grader or are broken, each with its true score."""
