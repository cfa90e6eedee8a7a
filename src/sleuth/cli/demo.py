"""`sleuth demo`."""

import importlib.util
import os
import sys
import tempfile
import webbrowser
from pathlib import Path

import click

from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import plainly
from sleuth.core.errors import UnusableInput

ORIGINAL = Path(__file__).with_name("demo_training.py")
FOLDER = Path(".sleuth", "demo")
NEEDED = {"torch": "torch", "sklearn": "scikit-learn"}  # module → package


@click.command()
@output_options
@plainly
def demo(json_file: str | None, html_file: str | None, fail_on: str | None, quiet: bool) -> None:
    """Diagnose a broken training of real digits, in a few seconds.

    The training is written to .sleuth/demo/digits.py, so that you can read it, repair it and examine it again. The report is
    also written as a page with charts; it opens in your browser when you sit in front of one.
    """
    from sleuth.api import examine_subject
    from sleuth.cli.factory import load

    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    _require_packages()
    file, repaired = _lay_out()
    if not quiet:
        click.echo(_introduction(file, repaired), err=True)
    given = load(f"{file}:training")
    page = Path(html_file or file.with_name("report.html"))
    Output(json_file, str(page), fail_on, quiet).deliver(examine_subject(given.subject, progress=False if quiet else None))
    if quiet or output.to_stdout:
        return
    click.echo(f"\nThe page with charts is {page}.", err=True)
    click.echo(f"The training is {file}. Repair it and ask again:\n  sleuth examine {file}:training", err=True)
    if _somebody_is_looking():
        webbrowser.open(page.resolve().as_uri())


def _somebody_is_looking() -> bool:
    """At a terminal, with a display in front of it: not in a script, not in CI, not over ssh."""
    at_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    away = any(os.environ.get(name) for name in ("CI", "SSH_CONNECTION", "SSH_TTY"))
    has_display = sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return at_terminal and has_display and not away


def _require_packages() -> None:
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UnusableInput(f"the demo needs {' and '.join(missing)}: pip install 'sleuth[demo]'")


def _lay_out() -> tuple[Path, bool]:
    """The training as a file of the user's, and whether it has been changed since: a change is never overwritten."""
    original = ORIGINAL.read_text(encoding="utf-8")
    file = FOLDER / "digits.py"
    try:
        if file.exists():
            return file, file.read_text(encoding="utf-8") != original
        FOLDER.mkdir(parents=True, exist_ok=True)
        file.write_text(original, encoding="utf-8")
    except OSError:  # the current folder cannot be written to
        file = Path(tempfile.mkdtemp(prefix="sleuth-demo-")) / "digits.py"
        file.write_text(original, encoding="utf-8")
    return file, False


def _introduction(file: Path, repaired: bool) -> str:
    if repaired:
        return f"Your {file} has been changed; it is examined as it is now. Delete it to get the original back.\n"
    return (
        "A small network should learn to read 1,797 digits. It runs without a warning,\n"
        "yet after ten epochs its loss has gone from 2.30 to 2.29. Why?\n"
    )
