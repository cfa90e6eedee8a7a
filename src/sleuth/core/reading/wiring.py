"""Reading the values at a loss call: which axis holds the classes, and what is normalised over what."""

from collections.abc import Iterable, Iterator

from sleuth.core.observation import Argument, LossCall

# Losses that take one score a class, on axis 1 (axis 0 when there is no batch).
CLASSIFIES = ("cross-entropy", "nll")
# Sums of float32 probabilities come this close to one, also over 50,000 classes; half precision does not.
ROUNDING = 1e-3
HALF_ROUNDING = 2e-2


def classifies(call: LossCall) -> bool:
    """Does it tell classes apart that stand on axis 1? A loss of probabilities has them last."""
    output = call.argument("output")
    last = call.family == "probabilities" and output is not None and len(output.facts.shape) == 2
    return call.family in CLASSIFIES or last


def by_place(calls: Iterable[LossCall]) -> Iterator[list[LossCall]]:
    """Calls of the same loss from the same line, one a batch: what is wired wrongly is so in each of them."""
    groups: dict[tuple[str, str], list[LossCall]] = {}
    for call in calls:
        groups.setdefault((call.name, str(call.location)), []).append(call)
    yield from groups.values()


def class_axis(argument: Argument) -> int:
    return 1 if len(argument.facts.shape) > 1 else 0


def rounding(argument: Argument) -> float:
    return HALF_ROUNDING if "16" in argument.facts.dtype or "8" in argument.facts.dtype else ROUNDING


def within_unit(argument: Argument) -> bool:
    """Finite, and nowhere outside [0, 1]."""
    facts = argument.facts.statistics
    return facts.finite == facts.count > 0 and facts.min >= 0 and facts.max <= 1 + rounding(argument)


def sums_to_one(argument: Argument, axis: int, log: bool = False) -> bool:
    """`log`: the values are logarithms of what is summed."""
    sums = argument.exp_sums if log else argument.axis_sums
    return axis < len(sums) and all(abs(end - 1) <= rounding(argument) for end in sums[axis])


def is_probabilities(argument: Argument, axis: int) -> bool:
    return within_unit(argument) and argument.facts.shape[axis] > 1 and sums_to_one(argument, axis)
