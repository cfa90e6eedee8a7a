"""Checks of the stage: batch."""
