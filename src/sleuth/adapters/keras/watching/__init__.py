"""Listening to `fit` and `train_on_batch`: the function that takes a step is called by ours for the time of a watch."""
