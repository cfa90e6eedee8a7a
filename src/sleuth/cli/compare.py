"""`sleuth compare A B`."""

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sleuth.cli.output import FOUND, STDOUT, Output, write
from sleuth.cli.plainly import plainly
from sleuth.core.errors import UnusableInput

if TYPE_CHECKING:
    from sleuth.comparing.result import Comparison
    from sleuth.instruments.compare_runs import RunComparison

# What cannot be told is a warning.
FAILING: dict[str | None, tuple[str, ...]] = {"error": ("differs", "failed"), "warning": ("differs", "failed", "unknown")}


@click.command()
@click.argument("targets", metavar="A B [C…]", nargs=-1, required=True)
@click.option("--name", "names", multiple=True, metavar="A.PATH=B.PATH", help="A layer of A and the one that it is in B.")
@click.option("--no-carry", is_flag=True, help="Each model keeps its own weights, instead of those of A.")
@click.option("--json", "json_file", metavar="FILE", help="Also write all numbers as JSON (- for standard output).")
@click.option("--fail-on", type=click.Choice(["warning", "error"]), help="Exit with 1 when they differ. For scripts and CI.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing; messages still go to stderr.")
@plainly
def compare(
    targets: tuple[str, ...], names: tuple[str, ...], no_carry: bool, json_file: str | None, fail_on: str | None, quiet: bool
) -> None:
    """Compare one model in two frameworks, two versions of a model, or two recorded runs.

    A model is FILE.py:FACTORY; the factory returns a model, or a dict with model, loss, optimizer
    and, for one of them, a batch: {"model": ..., "train": (x, y)}. The weights of A are carried over
    to the others; what differs first is named, and why.

    \b
      sleuth compare net_torch.py:build net_jax.py:build
      sleuth compare old.py:training new.py:training --fail-on error
      sleuth compare a.py:build b.py:build c.py:build --json compared.json
      sleuth compare .sleuth/runs/MONDAY .sleuth/runs/TUESDAY
    """
    output = Output(json_file, None, fail_on, quiet)
    output.check()
    if len(targets) < 2:
        raise UnusableInput("compare takes at least two: sleuth compare A B.")
    # What the user's own code prints must not end up inside the JSON.
    with contextlib.redirect_stdout(sys.stderr) if output.to_stdout else contextlib.nullcontext():
        found = _runs(targets) if all(_is_run(t) for t in targets) else _models(targets, _pairs(names), not no_carry)
    if not quiet and json_file != STDOUT:
        click.echo(str(found))
    write(json_file, lambda: json.dumps(found.to_dict(), indent=1))
    if found.status in FAILING.get(fail_on, ()):
        raise click.exceptions.Exit(FOUND)


def _is_run(target: str) -> bool:
    return Path(target).is_dir() or target.endswith(".sqlite")


def _pairs(names: tuple[str, ...]) -> dict[str, str] | None:
    for entry in names:
        if "=" not in entry:
            raise UnusableInput(f"--name {entry} has no '='; write --name encoder.fc1=Dense_0.")
    return {a: b for a, _, b in (entry.partition("=") for entry in names)} or None


def _runs(targets: tuple[str, ...]) -> "RunComparison":
    from sleuth.instruments.compare_runs import compare_runs

    if len(targets) != 2:
        raise UnusableInput("two runs are compared at a time; sleuth ui shows more side by side.")
    return compare_runs(*targets)


def _models(targets: tuple[str, ...], names: dict[str, str] | None, carry: bool) -> "Comparison":
    from sleuth.cli.factory import build
    from sleuth.instruments.compare import compare as compare_models

    runs = [target for target in targets if _is_run(target)]
    if runs:
        raise UnusableInput(f"{runs[0]} is a run, and the others are not: compare runs with runs, models with models.")
    a, b, *others = (build(target) for target in targets)
    more: dict[str, Any] = {f"model {i}": thing for i, thing in enumerate(others, 3)}
    return compare_models(a, b, names=names, carry=carry, **more)
