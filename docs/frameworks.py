"""Writes docs/frameworks.md: what works in which framework, from the adapters and kits themselves. Every dash has its reason."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from frameworks_reasons import MISSING, WORDS

from sleuth.core.contract import adapter as protocol
from sleuth.core.contract.adapter import Adapter
from sleuth.testing import CannotBuild, Case, Kit, suited
from tests.golden_tables import rows

TESTS = Path(__file__).parents[1] / "tests"
CAPABILITIES = tuple(WORDS)
# What each instrument asks of an adapter.
INSTRUMENTS = (
    ("Inspects", ("show_batch", "summary", "trace", "try_component")),
    ("Routes", ("graph",)),
    ("Shows", ("feature_maps", "filters")),
    ("Credits", ("gradcam",)),
    ("Attends", ("attention",)),
    ("LayerValues", ("activations", "dead_units")),
    ("Profiles", ("profile",)),
    ("Steps", ("compare", "find_lr", "gradcheck", "gradients", "landscape", "overfit_batch", "weights")),
)
# What ./dev bench frameworks printed last; its last lines are a table.
MEASURED = TESTS.parent / "benchmarks" / "results" / "frameworks.txt"
INTRODUCTION = """# What works in which framework

Written by `./dev docs` from the adapters and from the cases of the tests: each tick of a check is a training that is ill, built
in that framework, whose illness was named first. Its healthy twin, on which every check must be silent, is tried by
`./dev bench frameworks` and `./dev test --full`.
"""


def page(kits: list[Kit], cases: list[Case]) -> str:
    adapters = {kit.name: _adapter(kit.name) for kit in kits}
    notes = Notes()
    parts = [
        INTRODUCTION,
        *_measured(),
        "## Capabilities\n",
        *_table(adapters, ((f"{c}: {WORDS[c]}", _capability(c, adapters, notes)) for c in CAPABILITIES)),
        "\n## Instruments\n",
        *_table(adapters, _instruments(adapters, notes)),
        "\n## Checks\n",
        *_table(adapters, _checks(kits, cases, notes)),
        "\n## Why not\n",
        *(f"{number}. {reason}" for reason, number in notes.numbers.items()),
    ]
    return "\n".join(parts) + "\n"


class Notes:
    """Reasons, each told once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def dash(self, reason: str) -> str:
        number = self.numbers.setdefault(reason, len(self.numbers) + 1)
        return f"– <sup>{number}</sup>"


def _adapter(name: str) -> Adapter:
    found: Adapter = importlib.import_module(f"sleuth.adapters.{name}").ADAPTER
    return found


def _measured() -> Iterator[str]:
    """Of each framework, how many of its cases are told right."""
    if not MEASURED.exists():
        return
    heads, *rows = [line.split("|") for line in MEASURED.read_text(encoding="utf-8").strip().rpartition("\n\n")[2].splitlines()]
    yield "## How often it is right\n"
    yield "Every case in every framework (`./dev bench frameworks`), the healthy ones under every check:\n"
    yield from _table([head.strip() for head in heads[1:]], ((name.strip(), [c.strip() for c in cells]) for name, *cells in rows))
    yield ""


def _table(names: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    heads = ["", *names]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for label, cells in rows:
        yield f"| {label} | {' | '.join(cells)} |"


def _capability(word: str, adapters: dict[str, Adapter], notes: Notes) -> list[str]:
    kind = getattr(protocol, word)
    return ["✓" if isinstance(a, kind) else notes.dash(f"{name}: {MISSING[name][word]}") for name, a in adapters.items()]


def _instruments(adapters: dict[str, Adapter], notes: Notes) -> Iterator[tuple[str, list[str]]]:
    for word, names in INSTRUMENTS:
        yield ", ".join(f"`{name}`" for name in names), _capability(word, adapters, notes)


def _checks(kits: list[Kit], cases: list[Case], notes: Notes) -> Iterator[tuple[str, list[str]]]:
    built = [suited(cases, TESTS / "twins", kit) for kit in kits]
    told_right = {kit.name: rows(kit.name).keys() for kit in kits}
    for versions in zip(*built, strict=True):
        name = versions[0].name
        yield (
            f"[{name}](checks/{name}.md)",
            [
                "✓" if name in told_right[kit.name] else _why_not(case, kit, notes)
                for case, kit in zip(versions, kits, strict=True)
            ],
        )


def _why_not(case: Case, kit: Kit, notes: Notes) -> str:
    try:
        case.sick(kit)
    except CannotBuild as reason:
        return notes.dash(str(reason))
    return notes.dash("its sick case has not been told right yet")
