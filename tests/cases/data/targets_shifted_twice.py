"""A character model of a real text, whose targets the data gives shifted, and the loss shifts once more."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.cases.data.targets_not_shifted import character_model, few_windows


def sick(kit: Kit) -> Subject:
    return character_model(kit, *few_windows(), cut=1)


def healthy(kit: Kit) -> Subject:
    inputs, _ = few_windows()
    return character_model(kit, inputs, inputs.copy(), cut=1)
