"""What the page of a check says, section by section, from the check itself and from its example."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sleuth.core.check import Check
from sleuth.views.example import Example
from sleuth.views.readings import readings
from sleuth.views.thresholds import thresholds
from sleuth.views.wording import sentence

KIT = "kit builds the parts in the framework at hand: kit.linear(64, 10) is nn.Linear(64, 10) in PyTorch."


@dataclass(frozen=True)
class Section:
    heading: str
    text: str = ""
    items: Sequence[str] = ()
    names: Sequence[str] = ()  # of checks
    code: str = ""
    language: str = "toml"


def sections(check: Check, checks: Sequence[Check], example: Example | None) -> Iterator[Section]:
    """`checks` are all there are: they tell what explains this one."""
    yield Section("Why it matters", check.why)
    yield Section("What to do", check.fix)
    if check.symptoms:
        yield Section("How people put it", items=[f"“{phrase}”" for phrase in check.symptoms])
    decided = f"Decided by {check.decided_by}." if check.decided_by else ""
    yield Section("What it looks at", decided, readings(check))
    if check.explains:
        yield Section("It explains", "Where both are found, these are its symptoms:", names=check.explains)
    if causes := explained_by(check, checks):
        yield Section("It is explained by", "Where one of these is found, it is the cause and this the symptom:", names=causes)
    yield from _settings(check)
    if example is not None:
        yield from _cases(example)


def explained_by(check: Check, checks: Iterable[Check]) -> list[str]:
    return [c.name for c in checks if check.name in c.explains]


def _settings(check: Check) -> Iterator[Section]:
    if found := thresholds(check):
        lines = [f"[tool.sleuth.thresholds.{check.name}]", *(f"{t.name} = {t.value!r}" for t in found)]
        reasons = [f"{t.name}: {t.reason}" for t in found if t.reason]
        yield Section("Thresholds", "In pyproject.toml, with the defaults:", reasons, code="\n".join(lines))
    ignore = f'[tool.sleuth]\nignore = {{ {check.name} = "why it is meant here" }}'
    yield Section("When it is meant", "In pyproject.toml; the reason is shown in every report:", code=ignore)


def _cases(example: Example) -> Iterator[Section]:
    notes = [KIT if "kit." in example.sick else "", *(f"{name}() gives {what}" for name, what in example.data.items())]
    notes = [note for note in notes if note]
    yield Section("Sick case", sentence(example.story), notes, code=example.sick, language="python")
    yield Section("Healthy case", "The same, except for:", code=example.changes, language="diff")
    if example.finding:
        yield Section("What sleuth says of the sick case", code=example.finding, language="text")
