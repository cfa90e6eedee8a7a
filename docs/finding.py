"""What sleuth says of a sick case: examined for real, at the time the pages are written."""

import contextlib
import re
from pathlib import Path

from sleuth import Report, examine
from sleuth.testing import CannotBuild, Case, Elsewhere
from sleuth.views.terminal import write

# So much that a busy machine cuts nothing off: what is found must not depend on who else is at work.
BUDGET_SECONDS = 600
# A terminal of 80 columns, less the indent of a page's code.
COLUMNS = 76
# The page has told it already, in the same words.
WHY = re.compile(r"^  Why:  .*\n(?: {8}.*\n)*", re.MULTILINE)


class NothingToShow(Exception):
    pass


def finding(case: Case, root: Path) -> str:
    """The first culprit as the report shows it, without the Why; places are relative to `root`."""
    with contextlib.chdir(root):
        try:
            report = sick_report(case)
        except Elsewhere as reason:
            return f"(What sleuth says is not shown: {reason}.)"
        blocks = write(report, COLUMNS).plain().split("\n\n")
    if not report.culprits or report.culprits[0].finding.name != case.name:
        raise NothingToShow(f"the sick case of {case.name} is not diagnosed as such:\n\n{blocks[1]}")
    # A hint stands below the verdict that the training is healthy.
    culprit = next(block for block in blocks if block[2:].startswith(case.name))
    return WHY.sub("", culprit)


def sick_report(case: Case) -> Report:
    """By the first kit that can build it."""
    from tests.conftest import kits
    from tests.seeding import seed
    from tests.watched import watched

    for kit in kits():
        seed()
        try:
            sick = case.sick(kit)
        except Elsewhere:
            raise
        except CannotBuild:
            continue
        return watched(sick, kit) if case.source == "watch" else examine(sick, budget_seconds=BUDGET_SECONDS, progress=False)
    raise NothingToShow(f"no kit can build the sick case of {case.name}")
