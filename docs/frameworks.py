"""Writes docs/frameworks.md: what works in which framework, from the adapters and kits themselves. Every dash has its reason."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from frameworks_reasons import MISSING, WORDS

from sleuth.core import adapter as protocol
from sleuth.core.adapter import Adapter
from sleuth.testing import CannotBuild, Case, Kit

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "cases"
CAPABILITIES = tuple(WORDS)
# What each instrument asks of an adapter.
INSTRUMENTS = (
    ("Inspects", ("summary", "trace", "try_component")),
    ("Inspects", ("attention", "feature_maps", "filters", "gradcam", "graph", "show_batch")),
    ("Overhears", ("activations", "dead_units")),
    ("Profiles", ("profile",)),
    ("Steps", ("compare", "find_lr", "gradcheck", "gradients", "landscape", "overfit_batch", "weights")),
)
INTRODUCTION = """# What works in which framework

Written by `./dev docs` from the adapters and from the cases of the tests: each tick of a check is a training that is ill, built
in that framework, whose illness was named first. Its healthy twin, on which every check must be silent, is tried by
`./dev test --full`: on PyTorch and NumPy all of them were, elsewhere only some so far.
"""


def page(kits: list[Kit], cases: list[Case]) -> str:
    adapters = {kit.name: _adapter(kit.name) for kit in kits}
    notes = Notes()
    parts = [
        INTRODUCTION,
        "## Capabilities\n",
        *_table(adapters, ((f"{c}: {WORDS[c]}", _capability(c, adapters, notes)) for c in CAPABILITIES)),
        "\n## Instruments\n",
        *_table(adapters, _instruments(adapters, notes)),
        "\n## Checks\n",
        *_table(adapters, ((f"[{case.name}](checks/{case.name}.md)", _case(case, kits, notes)) for case in cases)),
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
        cells = _capability(word, adapters, notes)
        for place, name in enumerate(adapters):
            if reason := MISSING[name].get(names[0]):  # the capability is filled in part
                cells[place] = notes.dash(f"{name}: {reason}")
        yield ", ".join(f"`{name}`" for name in names), cells


def _case(case: Case, kits: list[Kit], notes: Notes) -> list[str]:
    return [_cell(case, kit, notes) for kit in kits]


def _cell(case: Case, kit: Kit, notes: Notes) -> str:
    if (GOLDEN / f"{case.name}.{kit.name}.txt").exists():
        return "✓"
    try:
        case.sick(kit)
    except CannotBuild as reason:
        return notes.dash(str(reason))
    return notes.dash("its sick case has not been told right yet")
