"""Every case as every kit builds it, and what sleuth says of it."""

from dataclasses import replace
from pathlib import Path

from sleuth import Report, examine
from sleuth.testing import Case, Kit, discover, suited
from tests.watched import watched

HERE = Path(__file__).parent
CASES = discover(HERE / "cases")
TWINS = HERE / "twins"
# Probes are bounded by their steps; a busy machine shall not cut them off.
BUDGET_SECONDS = 180
EVERY = 4


def cases_of(kit: Kit) -> list[Case]:
    return suited(CASES, TWINS, kit)


def diagnosed(case: Case, kit: Kit, variant: str) -> Report:
    """Raises CannotBuild where the kit cannot build the case."""
    built = getattr(case, variant)(kit)
    if case.source != "watch":
        return examine(built, budget_seconds=BUDGET_SECONDS, progress=False)
    # Left to itself a watch chooses its steps by the clock; what stands in a golden file must not depend on that.
    return watched(replace(built, options={"every": EVERY, **built.options}), kit)
