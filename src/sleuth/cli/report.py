"""`sleuth report RUN`."""

from pathlib import Path

import click

from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import plainly
from sleuth.core.errors import UnusableInput


@click.command()
@click.argument("file", metavar="[RUN]", required=False)
@output_options
@plainly
def report(file: str | None, json_file: str | None, html_file: str | None, fail_on: str | None, quiet: bool) -> None:
    """Show what a watched run says, also one that died: RUN is its folder. Or a report that was saved as JSON.

    \b
      sleuth report                            the latest run below .sleuth/runs
      sleuth report .sleuth/runs/20260101-120000-Net-4711
      sleuth examine train.py:training --json report.json
      sleuth report report.json --html report.html
    """
    from sleuth.api import load

    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    output.deliver(load(_latest() if file is None else Path(file)))


def _latest() -> Path:
    from sleuth.session.run_folder import RUNS

    written = [(file.stat().st_mtime, file.parent) for file in RUNS.glob("*/*.sqlite*")]
    if not written:
        raise UnusableInput(f"there is no run below {RUNS} in the current folder; name one: sleuth report RUN")
    return max(written)[1]
