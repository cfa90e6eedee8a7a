"""Checks of the stage: hyperparameters."""
