"""Listening to a loop of the user's own around evaluate()."""
