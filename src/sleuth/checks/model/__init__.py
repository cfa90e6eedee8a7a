"""Checks of the stage: model."""
