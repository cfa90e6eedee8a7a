"""The list of all checks by stage, for the terminal and as Markdown."""

from collections.abc import Iterable

from sleuth.core.check import Check
from sleuth.core.stage import Stage
from sleuth.views.explain import escaped
from sleuth.views.sheet import Sheet, Span, for_screen


def catalogue_for_screen(checks: Iterable[Check]) -> str:
    checks = tuple(checks)
    return for_screen(lambda width: write(checks, width))


def write(checks: tuple[Check, ...], width: int) -> Sheet:
    sheet = Sheet(width)
    longest = max((len(c.name) for c in checks), default=0)
    for stage, members in _by_stage(checks):
        sheet.blank()
        sheet.row(Span(stage.title, "bold"))
        for check in members:
            label = f"{check.code} {check.severity.name[0]}  {check.name.ljust(longest)}  "
            sheet.paragraph(check.title, indent=2, label=label, label_style="")
    sheet.blank()
    sheet.row(Span(f"{len(checks)} checks (E error, W warning, H hint). One in full: sleuth explain NAME", "dim"))
    return sheet


def index(checks: Iterable[Check]) -> str:
    """The index of the generated pages."""
    lines = ["# The checks", "", "In the order in which they are asked. `sleuth explain NAME` prints the same pages.", ""]
    for stage, members in _by_stage(tuple(checks)):
        lines += [f"## {stage.title}", "", "| code | name | severity | the illness |", "|---|---|---|---|"]
        lines += [f"| {c.code} | [{c.name}]({c.name}.md) | {c.severity.value} | {escaped(c.title)} |" for c in members]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _by_stage(checks: tuple[Check, ...]) -> Iterable[tuple[Stage, list[Check]]]:
    for stage in Stage:
        if members := [c for c in checks if c.stage is stage]:
            yield stage, members
