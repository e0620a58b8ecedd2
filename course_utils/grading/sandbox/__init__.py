"""Run a stranger's notebook where it can do no harm, and read what it sends."""
