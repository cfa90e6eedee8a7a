"""Experiments on one batch."""
