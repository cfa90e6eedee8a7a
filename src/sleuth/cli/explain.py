"""`sleuth explain NAME|CODE`."""

import difflib
from collections.abc import Sequence

import click

from sleuth.cli.plainly import plainly
from sleuth.core.check import Check
from sleuth.core.errors import UnusableInput


@click.command()
@click.argument("name", metavar="NAME|CODE")
@plainly
def explain(name: str) -> None:
    """Say what a finding means, why it matters and what to do.

    \b
      sleuth explain vanishing-gradients
      sleuth explain T407
    """
    from sleuth.checks import all_checks
    from sleuth.views.explain import explain_for_screen

    checks = all_checks()
    click.echo(explain_for_screen(_find(name, checks), checks))


def _find(name: str, checks: Sequence[Check]) -> Check:
    """As people type it: T407, t407, vanishing_gradients."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    by_word = {word.lower(): check for check in checks for word in (check.name, check.code)}
    if wanted in by_word:
        return by_word[wanted]
    close = difflib.get_close_matches(wanted, by_word, n=3, cutoff=0.5)
    hint = f"Did you mean {', '.join(close)}?" if close else "`sleuth checks` lists them."
    raise UnusableInput(f"there is no check {name!r}. {hint}")
