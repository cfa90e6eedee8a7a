"""Illnesses of what a training uses up."""
