"""`sleuth replay RUN --scene N file.py:build`."""

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sleuth.cli.output import STDOUT, write
from sleuth.cli.plainly import plainly
from sleuth.cli.users_error import describe
from sleuth.core.errors import UnusableInput
from sleuth.core.words import kind_of

if TYPE_CHECKING:
    from sleuth.core.subject import Subject


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("target", metavar="FILE.py:BUILD")
@click.option("--scene", "number", type=int, default=1, show_default=True, metavar="N", help="Which of the run's scenes.")
@click.option("--all", "every", is_flag=True, help="Show every operation, not only those near the first NaN or Inf.")
@click.option("--json", "json_file", metavar="FILE", help="Also write everything as JSON (- for standard output).")
@plainly
def replay(run: str, target: str, number: int, every: bool, json_file: str | None) -> None:
    """Do a step again that a watch kept when something went wrong in it.

    When a loss turns NaN, or another error is found, sleuth.watch keeps that step in RUN/scenes/N: the batch, the
    weights before they were written, the random state. Here it is done again, op by op, on any machine.

    BUILD is a function without arguments that returns the model, built as in the training (its weights do not
    matter). When the loss is not a function of torch, return a dict or sleuth.Subject with model and
    loss(output, target).

    \b
      # model.py
      def build():
          return Net(width=64)

    \b
      sleuth replay .sleuth/runs/20260101-120000-Net-4711 --scene 1 model.py:build
      sleuth replay RUN model.py:build --all
      sleuth replay RUN model.py:build --json step.json

    It says whether the step came out the same (to the last bit, within rounding, or not), and in which operation
    NaN or Inf was born. Exit codes: 0 done, 2 the run, the scene or the model cannot be used.
    """
    from sleuth.api import replay as do_again
    from sleuth.api import scene
    from sleuth.views.replayed import as_data, as_text

    if not Path(run).exists():
        raise UnusableInput(f"there is no run {run}; runs lie in .sleuth/runs, a folder each.")
    kept = scene(run, number)
    with contextlib.redirect_stdout(sys.stderr) if json_file == STDOUT else contextlib.nullcontext():
        subject = _subject(target)
        try:
            replayed = do_again(kept, subject)
        except UnusableInput:
            raise
        except Exception as error:
            raise UnusableInput(f"the model of {target} cannot do this step: {describe(error)}") from None
    if json_file != STDOUT:
        click.echo(as_text(replayed, every))
    write(json_file, lambda: json.dumps(as_data(replayed), indent=2, ensure_ascii=False, allow_nan=False))


def _subject(target: str) -> "Subject":
    from sleuth.cli.factory import build
    from sleuth.core.subject import Subject

    built: Any = build(target)
    if isinstance(built, Subject):
        return built
    if isinstance(built, Mapping):
        if built.get("model") is None:
            raise UnusableInput(f"the dict of {target} has no 'model'.")
        return Subject(built["model"], None, built.get("loss"))
    if built is None or isinstance(built, str | int | float | list | tuple):
        raise UnusableInput(f"{target} returned {kind_of(built)}; return the model, or a dict with model and loss.")
    return Subject(built, None)
