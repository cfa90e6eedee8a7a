"""A training on a copy, watched."""
