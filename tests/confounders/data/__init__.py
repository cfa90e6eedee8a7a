"""Illnesses of the data."""
