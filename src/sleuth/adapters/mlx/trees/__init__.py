"""Trainings of a tree of arrays: dicts and lists of weights, a function of one's own, `mx.value_and_grad`; no nn.Module."""
