"""Listening to trainings in JAX: a second executable of the user's own step returns statistics beside its result."""
