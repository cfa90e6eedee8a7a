"""Calls that are put into the user's own files while they are loaded: where weights are updated, and where a loss is told."""
