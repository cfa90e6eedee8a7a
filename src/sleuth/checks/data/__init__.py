"""Checks of the stage: data."""
