"""Trainings on a copy at other settings."""
