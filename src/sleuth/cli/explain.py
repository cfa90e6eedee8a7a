"""`sleuth explain NAME|CODE|"SYMPTOM"`."""

import difflib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sleuth.cli.output import STDOUT, write
from sleuth.cli.plainly import plainly
from sleuth.core.errors import UnusableInput

if TYPE_CHECKING:
    from sleuth.core.check import Check

# As names and codes are written; anything else is a symptom.
LIKE_A_NAME = re.compile(r"[a-z]+([-_][a-z0-9]+)+|[a-z]\d+", re.IGNORECASE)


@click.command()
@click.argument("words", metavar='NAME|CODE|"SYMPTOM"', nargs=-1, required=True)
@click.option("--json", "json_file", metavar="FILE", help="Also write the answer as JSON (- for standard output).")
@plainly
def explain(words: tuple[str, ...], json_file: str | None) -> None:
    """Say what a finding means, or which checks a symptom points to.

    \b
      sleuth explain vanishing-gradients
      sleuth explain T407
      sleuth explain "loss is nan"
      sleuth explain "IndexError: Target 10 is out of bounds" --json -

    A check's page says why it matters and what to do, and shows a sick and a healthy case.
    A symptom, or the message of an exception, is answered with the likely culprits in order.
    """
    from sleuth.checks import all_checks

    text, data = _answer(" ".join(words), all_checks())
    if json_file != STDOUT:
        click.echo(text)
    write(json_file, lambda: json.dumps(data, indent=2, ensure_ascii=False))


def _answer(text: str, checks: "Sequence[Check]") -> tuple[str, dict[str, Any]]:
    from sleuth.views import explain as pages
    from sleuth.views import suspects
    from sleuth.views.symptoms import search

    if (check := _named(text, checks)) is not None:
        return pages.explain_for_screen(check, checks), pages.as_data(check, checks)
    if LIKE_A_NAME.fullmatch(text.strip()):
        raise UnusableInput(f"there is no check {text!r}. {_nearest(text, checks)}")
    if (answer := search(text, checks)) is None:
        raise UnusableInput(f"no check has to do with {text!r}. {_nearest(text, checks)}")
    return suspects.render_for_screen(answer), suspects.as_data(answer)


def _named(text: str, checks: "Sequence[Check]") -> "Check | None":
    """As people type it: T407, t407, vanishing_gradients."""
    return _by_word(checks).get(_spelled(text))


def _nearest(text: str, checks: "Sequence[Check]") -> str:
    close = difflib.get_close_matches(_spelled(text), _by_word(checks), n=3, cutoff=0.5)
    if close:
        return f"Did you mean {', '.join(close)}?"
    return '`sleuth checks` lists them all; or say what you see: sleuth explain "loss does not fall".'


def _spelled(text: str) -> str:
    return text.strip().lower().replace("_", "-").replace(" ", "-")


def _by_word(checks: "Sequence[Check]") -> "dict[str, Check]":
    return {word.lower(): check for check in checks for word in (check.name, check.code)}
