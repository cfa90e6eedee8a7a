"""Listening to the user's own loop. Nothing is replaced while no watch is open, and nothing hangs on the user's objects."""
