"""Digits through tanh: weights five times too large pin most units to an end, and weights of Keras' usual size do not."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.model.saturated_units import training


def sick(kit: Kit) -> Subject:
    return training(kit, factor=4.6)  # Keras starts with larger weights: the same size as the case's


def healthy(kit: Kit) -> Subject:
    return training(kit, factor=1.0)
