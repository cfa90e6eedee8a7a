"""Checks of the stage: consistency."""
