"""Listening to a loop around a hand-written network."""
