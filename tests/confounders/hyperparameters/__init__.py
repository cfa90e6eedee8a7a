"""Illnesses of the settings."""
