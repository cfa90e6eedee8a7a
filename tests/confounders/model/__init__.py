"""Illnesses of the model and of what it hands to the loss."""
