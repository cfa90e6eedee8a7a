"""What a run may be told, at the command line and at the top of a cell: read and required in one way."""

import math

from sleuth.core.errors import UnusableInput


def require_limits(*, every: int | None, overhead: float, steps: int | None, budget: float | None) -> None:
    if every is not None and every < 1:
        raise UnusableInput(f"--every {every} is not a number of steps; give 1 for every step.")
    if steps is not None and steps < 1:
        raise UnusableInput(f"--steps {steps} leaves nothing to look at; give at least 1.")
    if budget is not None and not 0 <= budget < math.inf:
        raise UnusableInput(f"--budget {budget:g} is not a number of seconds; 0 means no experiments.")
    if not 0 < overhead < 1:
        raise UnusableInput(f"--overhead {overhead:g} is not a share of the time; 0.02 allows two percent.")


def reason_of(entry: str) -> tuple[str, str]:
    """NAME=REASON, of a finding that is left out."""
    name, equals, reason = entry.partition("=")
    if not equals or not reason.strip():
        raise UnusableInput(f'{entry!r} lacks a reason; write --ignore "{name}=why it is meant here".')
    return name.strip(), reason.strip()
