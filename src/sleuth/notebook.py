"""`%load_ext sleuth`, then `%%sleuth` at the top of a cell: what is trained in the cell is watched, and the report is shown."""

import argparse
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sleuth.adapters import frameworks
from sleuth.core.errors import EnoughSteps, UnusableInput
from sleuth.core.runtime.importing import forget, when_imported
from sleuth.script.options import reason_of, require_limits
from sleuth.script.tracebacks import leave_out_ours
from sleuth.session.script import Options, Session, Told

TAKES = '--every N, --overhead SHARE, --steps N, --budget SECONDS, --select NAME, --ignore "NAME=REASON", --name NAME'


class CellFailed(Exception):
    """The cell raised, and the notebook has shown that. This one only stops the cells after it, as the cell itself would."""

    def _render_traceback_(self) -> list[str]:
        return []


def load(shell: Any) -> None:
    shell.register_magic_function(partial(run_cell, shell), magic_kind="cell", magic_name="sleuth")


def run_cell(shell: Any, line: str, cell: str) -> None:
    try:
        session = Session("this cell", _options(line))
    except UnusableInput as unusable:
        print(f"sleuth: {unusable}")
        raise CellFailed(str(unusable)) from None
    waiting = [when_imported(name, partial(session.attend, name, found_already=True)) for name in frameworks()]
    error: BaseException | None = None
    try:
        with _plain_tracebacks(shell), _leaving_in_silence(shell):
            result = shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
    finally:
        for one in waiting:
            if one is not None:
                forget(one)
        session.end(error)
    _show(session.main())
    if error is not None and not isinstance(error, EnoughSteps):
        raise CellFailed(str(error)) from None


@contextmanager
def _plain_tracebacks(shell: Any) -> Iterator[None]:
    """Without our frames; whoever shows exceptions in a way of their own goes on doing so."""
    before = shell.custom_exceptions, shell.CustomTB
    if not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_without_ours)
    try:
        yield
    finally:
        shell.custom_exceptions, shell.CustomTB = before


@contextmanager
def _leaving_in_silence(shell: Any) -> Iterator[None]:
    """That enough steps were taken is nothing to be shown; a notebook says of every SystemExit how one leaves it for good."""
    plain = shell.showtraceback

    def show(*args: Any, **kwargs: Any) -> None:
        if not isinstance(sys.exc_info()[1], EnoughSteps):
            plain(*args, **kwargs)

    shell.showtraceback = show
    warnings.filterwarnings("ignore", message="To exit: use")
    ours = warnings.filters[0]
    try:
        yield
    finally:
        del shell.showtraceback
        if ours in warnings.filters:
            warnings.filters.remove(ours)  # type: ignore[attr-defined]


def _show_without_ours(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int | None = None
) -> None:
    leave_out_ours(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


def _show(told: Told) -> None:
    from IPython.display import display

    if told.folder is None:
        print(f"sleuth · nothing was examined: {told.report.notes[0]}")
    else:
        display({"text/plain": told.report.to_text(), "text/html": told.report.to_fragment()}, raw=True)


def _options(line: str) -> Options:
    parser = _Parser(prog="%%sleuth", add_help=False)
    parser.add_argument("--every", type=int)
    parser.add_argument("--overhead", type=float, default=0.02)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--select", action="append", default=[])
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--name", default="")
    given = parser.parse_args(shlex.split(line))
    require_limits(every=given.every, overhead=given.overhead, steps=given.steps, budget=given.budget)
    select = [word for entry in given.select for word in entry.split(",")] or None
    ignore = dict(reason_of(entry) for entry in given.ignore) or None
    return Options(**{**vars(given), "select": select, "ignore": ignore})


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UnusableInput(f"{message}. %%sleuth takes {TAKES}.")
