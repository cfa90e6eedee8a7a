"""`sleuth report RUN`."""

from pathlib import Path

import click

from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import plainly


@click.command()
@click.argument("file", metavar="RUN")
@output_options
@plainly
def report(file: str, json_file: str | None, html_file: str | None, fail_on: str | None, quiet: bool) -> None:
    """Show what a watched run says, also one that died: RUN is its folder. Or a report that was saved as JSON.

    \b
      sleuth report .sleuth/runs/20260101-120000-Net-4711
      sleuth examine train.py:training --json report.json
      sleuth report report.json --html report.html
    """
    from sleuth.api import load

    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    output.deliver(load(Path(file)))
