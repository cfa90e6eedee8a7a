"""Experiments on the data: they read samples, and train nothing of the user's."""
