"""`sleuth examine file.py:factory`."""

import contextlib
import sys
from typing import Any

import click

from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import plainly
from sleuth.script.options import reason_of


@click.command()
@click.argument("target", metavar="FILE.py:FACTORY")
@click.option("--budget-seconds", type=float, metavar="SECONDS", help="Time for the whole examination (default 60).")
@click.option("--prefixes", is_flag=True, help="Also look at the model as it grows, layer by layer.")
@click.option("--select", multiple=True, metavar="NAME", help="Ask only this check (name or code). Can be repeated.")
@click.option("--ignore", multiple=True, metavar="NAME=REASON", help="Leave a finding out; the reason is shown. Can be repeated.")
@output_options
@plainly
def examine(
    target: str,
    budget_seconds: float | None,
    prefixes: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    json_file: str | None,
    html_file: str | None,
    fail_on: str | None,
    quiet: bool,
) -> None:
    """Examine a training in order: data, model, one batch, a short trial, hyperparameters.

    FACTORY is a function without arguments that builds your training and returns it as a dict
    (or a sleuth.Subject). Nothing of yours is changed; experiments run on a copy.

    \b
      # train.py
      def training():
          ...
          return {"model": model, "train": train_loader, "loss": loss,
                  "optimizer": optimizer, "validation": validation_loader}

    \b
      sleuth examine train.py:training
      sleuth examine train.py:training --budget-seconds 20
      sleuth examine train.py:training --select double-softmax --select D104
      sleuth examine train.py:training --ignore "frozen-parameters=pretrained"
      sleuth examine train.py:training --json report.json --fail-on error

    Only model and train are required. Other keys: loss or step(model, batch), optimizer, validation,
    split(batch) -> (inputs, target), name. Ctrl-C ends early with the report so far.
    """
    from sleuth.api import examine_subject
    from sleuth.cli.factory import load

    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    reasons = dict(reason_of(entry) for entry in ignore)
    # What the user's own code prints must not end up inside the JSON.
    with contextlib.redirect_stdout(sys.stderr) if output.to_stdout else contextlib.nullcontext():
        given = load(target)
        flags: dict[str, Any] = {
            "budget_seconds": budget_seconds,
            "prefixes": prefixes or None,
            "select": [name for entry in select for name in entry.split(",")] or None,
            "ignore": reasons or None,
        }
        options = {**given.options, **{key: value for key, value in flags.items() if value is not None}}
        report = examine_subject(given.subject, progress=False if quiet else None, **options)
    output.deliver(report)
