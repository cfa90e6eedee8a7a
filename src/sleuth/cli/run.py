"""`sleuth run train.py`. Light at the start: what the script sets before it imports NumPy or a framework must count."""

import os
import sys
from pathlib import Path

import click

from sleuth.cli.attendance import Attendance
from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import Interrupted, plainly
from sleuth.script.launching import launch, wait_for_threads
from sleuth.script.options import reason_of, require_limits
from sleuth.script.target import Target, target_of
from sleuth.script.tracebacks import show

FAILED = 1


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module, as in python -m.")
@click.option("--every", type=int, metavar="N", help="Look at every Nth step in full (1: at each). Default: sleuth chooses.")
@click.option("--overhead", type=float, default=0.02, metavar="SHARE", help="Share of the time that looks may cost (0.02).")
@click.option("--steps", type=int, metavar="N", help="Leave the script after N steps and judge what was seen.")
@click.option(
    "--budget",
    type=float,
    metavar="SECONDS",
    help="Time for experiments after the script's end, on what passed by (0: none). Default: the training's own, 6 to 60 s.",
)
@click.option("--select", multiple=True, metavar="NAME", help="Ask only this check (name or code). Can be repeated.")
@click.option("--ignore", multiple=True, metavar="NAME=REASON", help="Leave a finding out; the reason is shown. Can be repeated.")
@click.option("--name", default="", metavar="NAME", help="What to call the run.")
@click.option("--run-dir", metavar="FOLDER", help="Where runs are kept (.sleuth/runs).")
@click.option("--nproc-per-node", metavar="N", help="Start it N times, by torchrun.")
@output_options
@click.argument("words", metavar="SCRIPT [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
@plainly
def run(
    words: tuple[str, ...],
    is_module: bool,
    every: int | None,
    overhead: float,
    steps: int | None,
    budget: float | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    name: str,
    run_dir: str | None,
    nproc_per_node: str | None,
    json_file: str | None,
    html_file: str | None,
    fail_on: str | None,
    quiet: bool,
) -> None:
    """Run a training script as it is, watch it, and say what is wrong with it.

    Nothing in the script changes. Its output, exit code and results are those of
    plain python; the report comes after its last line, on standard error.

    \b
      sleuth run train.py --epochs 3 --lr 0.1
      sleuth run -m package.train --epochs 3
      sleuth run --steps 200 train.py          the first 200 steps are enough
      sleuth run --every 1 train.py            look at every step in full
      sleuth run --budget 0 train.py           only watch, no experiments after it
      sleuth run --json report.json --fail-on error train.py
      sleuth run --nproc-per-node 2 train.py   two processes, by torchrun
      torchrun --nproc-per-node 2 -m sleuth run train.py

    Options of sleuth stand before the script, the script's own behind it.
    Ctrl-C stops the script, and what was seen is reported; during the experiments
    after its end it leaves the rest of them out.

    A finding that is meant can be allowed where it stands, on the line that the
    report names:

    \b
      loss.backward()  # sleuth: ignore[missing-zero-grad] they pile up on purpose

    \b
    Exit code: the script's own. Where that is 0, --fail-on may make it 1.
    A script that died without a word (kill -9, os._exit) is told of by
      sleuth report                            the latest run
    """
    target = target_of(words, is_module=is_module)
    if nproc_per_node is not None:
        _start_several(nproc_per_node)
    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    require_limits(every=every, overhead=overhead, steps=steps, budget=budget)
    options = {
        "every": every,
        "overhead": overhead,
        "steps": steps,
        "budget": budget,
        "quiet": quiet,
        "select": [word for entry in select for word in entry.split(",")] or None,
        "ignore": dict(reason_of(entry) for entry in ignore) or None,
        "name": name,
        **({"directory": Path(run_dir)} if run_dir else {}),
    }
    attendance = Attendance(target.name, options, output)
    attendance.begin()
    _leave(_ended_by(target, attendance), attendance)


def _ended_by(target: Target, attendance: Attendance) -> BaseException | None:
    error = launch(target, attendance.compiled)
    if error is not None and not isinstance(error, SystemExit):
        show(error)
    if attendance.is_here:  # not in a child that the script forked off
        error = wait_for_threads() or error
        attendance.end(error)
    return error


def _leave(error: BaseException | None, attendance: Attendance) -> None:
    """As the script was left. The report is told by an exit handler that was there before the script's own: after them."""
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted
    code = error.code if isinstance(error, SystemExit) else None if error is None else FAILED
    if code in (None, 0) and attendance.is_here and attendance.is_failed:
        code = FAILED
    raise SystemExit(code)


def _start_several(count: str) -> None:
    """Hands over to torchrun, which starts this very command in each process, without the option that led here."""
    words = sys.orig_argv[_place_of_command(sys.orig_argv) :]
    at = next(i for i, word in enumerate(words) if word.startswith("--nproc-per-node"))
    del words[at : at + (1 if "=" in words[at] else 2)]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", count]
    sys.stdout.flush()
    os.execv(sys.executable, [*launcher, "-m", "sleuth", *words])


def _place_of_command(words: list[str]) -> int:
    return next(i for i, word in enumerate(words) if word == "run")
