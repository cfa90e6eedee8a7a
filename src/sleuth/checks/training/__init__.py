"""Checks of the stage: training."""
