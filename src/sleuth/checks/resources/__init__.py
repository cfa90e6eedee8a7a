"""Checks of the stage: resources."""
