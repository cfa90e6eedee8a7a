"""Experiments on the model: one forward and backward pass, its wiring, its start."""
