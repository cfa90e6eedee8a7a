"""The page of a check, for the terminal and as Markdown, from the check itself."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sleuth.core.check import Check, Readable
from sleuth.core.observation import (
    Architecture,
    Batch,
    Dropped,
    Evaluation,
    Failure,
    Frame,
    LossCall,
    Origin,
    Role,
    Settings,
    Step,
    Units,
)
from sleuth.views.sheet import WIDTH, Sheet, Span, for_screen
from sleuth.views.thresholds import thresholds

ROLES = {
    Role.INPUT: "what each layer is given",
    Role.ACTIVATION: "what each layer puts out",
    Role.GRADIENT: "the gradient of each parameter",
    Role.WEIGHT: "the values of each parameter",
    Role.UPDATE: "how far each step moves each parameter",
}
OBSERVATIONS: dict[type, str] = {
    Architecture: "the layers and parameters of the model",
    Settings: "the settings of loss and optimiser",
    Batch: "the batches as the data source gives them",
    LossCall: "what the loss is given and what it returns",
    Frame: "statistics of the tensors",
    Units: "the activity of single units",
    Step: "the training steps",
    Evaluation: "the metrics on training and validation data",
    Failure: "exceptions of data, forward, loss, backward and step",
    Origin: "the operation in which the first NaN or Inf is born",
    Dropped: "the steps that were left out",
}

# What Markdown would take for emphasis, a table, a tag or a link; an underscore inside a word is safe.
SPECIAL = re.compile(r"([*|<\\]|(?<!\w)_|_(?!\w)|\](?=\())")


@dataclass(frozen=True)
class Section:
    heading: str
    text: str = ""
    items: Sequence[str] = ()
    code: str = ""


def explain(check: Check, checks: Iterable[Check], *, markdown: bool = False) -> str:
    """`checks` are all there are: they tell what explains this one, and which names have a page to link to."""
    checks = tuple(checks)
    if markdown:
        return _markdown(check, _sections(check, checks), {c.name for c in checks})
    return _sheet(check, _sections(check, checks), WIDTH).plain()


def explain_for_screen(check: Check, checks: Iterable[Check]) -> str:
    sections = tuple(_sections(check, tuple(checks)))
    return for_screen(lambda width: _sheet(check, sections, width))


def _sections(check: Check, checks: tuple[Check, ...]) -> Iterable[Section]:
    causes = [c.name for c in checks if check.name in c.explains]
    yield Section("Why it matters", check.why)
    yield Section("What to do", check.fix)
    yield Section("What it looks at", items=[_reading(need) for need in check.reads])
    if check.explains:
        yield Section("It explains", "Where both are found, these are its symptoms:", check.explains)
    if causes:
        yield Section("It is explained by", "Where one of these is found, it is the cause and this the symptom:", causes)
    if found := thresholds(check):
        lines = [f"[tool.sleuth.thresholds.{check.name}]", *(f"{t.name} = {t.value!r}" for t in found)]
        reasons = [f"{t.name}: {t.reason}" for t in found if t.reason]
        yield Section("Thresholds", "In pyproject.toml, with the defaults:", reasons, "\n".join(lines))
    ignore = f'[tool.sleuth]\nignore = {{ {check.name} = "why it is meant here" }}'
    yield Section("When it is meant", "In pyproject.toml; the reason is shown in every report:", code=ignore)


def _reading(need: Readable | tuple[Readable, ...]) -> str:
    options = need if isinstance(need, tuple) else (need,)
    return ", or ".join(_words(option) for option in options)


def _words(what: Readable) -> str:
    if isinstance(what, Role):
        return ROLES[what]
    if what in OBSERVATIONS:
        return OBSERVATIONS[what]
    first = " ".join((what.__doc__ or what.__name__).split()).split(". ")[0].rstrip(".")
    return f"an experiment: {first[0].lower()}{first[1:]}"


def _sheet(check: Check, sections: Iterable[Section], width: int) -> Sheet:
    sheet = Sheet(width)
    sheet.row(
        Span(check.name, "bold"),
        Span(f"  {check.code} · {check.severity.value} · {check.stage.title}", "dim"),
    )
    sheet.paragraph(f"{check.title}.")
    for section in sections:
        sheet.blank()
        sheet.row(Span(section.heading, "bold"))
        sheet.paragraph(section.text, indent=2)
        for line in section.code.splitlines():
            sheet.row(Span(f"    {line}", "cyan"))
        for item in section.items:
            sheet.paragraph(item, indent=2, label="– ", label_style="dim")
    return sheet


def _markdown(check: Check, sections: Iterable[Section], pages: set[str]) -> str:
    lines = [f"# {check.name}", "", f"**{escaped(check.title)}.**", ""]
    lines += [f"`{check.code}` · {check.severity.value} · {check.stage.title}", ""]
    for section in sections:
        lines += [f"## {section.heading}", ""]
        lines += [escaped(section.text), ""] if section.text else []
        lines += ["```toml", *section.code.splitlines(), "```", ""] if section.code else []
        lines += [f"- {_linked(item, pages)}" for item in section.items]
        lines += [""] if section.items else []
    return "\n".join(lines).rstrip() + "\n"


def _linked(item: str, pages: set[str]) -> str:
    return f"[{item}]({item}.md)" if item in pages else escaped(item)


def escaped(text: str) -> str:
    """As Markdown that shows just this text, except that `code` in backticks stays code."""
    parts = text.split("`")
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
