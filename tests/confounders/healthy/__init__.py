"""Trainings that are well and look as if they were not."""
