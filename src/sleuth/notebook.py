"""`%load_ext sleuth`, then `%%sleuth` at the top of a cell: what is trained in the cell is watched, and the report is shown."""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sleuth.adapters import frameworks
from sleuth.core.errors import UnusableInput
from sleuth.running import Options, Session, Told
from sleuth.script.importing import forget, when_imported
from sleuth.script.tracebacks import leave_out_ours


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
        with _plain_tracebacks(shell):
            result = shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
    finally:
        for one in waiting:
            if one is not None:
                forget(one)
        session.end(error)
    _show(session.main())
    if error is not None:
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
        display({"text/plain": told.report.to_text(), "text/html": told.report.to_html()}, raw=True)


def _options(line: str) -> Options:
    parser = _Parser(prog="%%sleuth", add_help=False)
    parser.add_argument("--every", type=int)
    parser.add_argument("--overhead", type=float, default=0.02)
    parser.add_argument("--select", action="append")
    parser.add_argument("--name", default="")
    return Options(**vars(parser.parse_args(shlex.split(line))))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UnusableInput(f"{message}. %%sleuth takes --every N, --overhead SHARE, --select NAME, --name NAME.")
