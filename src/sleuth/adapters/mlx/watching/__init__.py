"""Listening to trainings in MLX. Nothing is computed for our sake but once at a step that is looked at."""
