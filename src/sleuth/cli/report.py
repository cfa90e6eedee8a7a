"""`sleuth report FILE.json`."""

from pathlib import Path

import click

from sleuth.cli.output import Output, output_options
from sleuth.cli.plainly import plainly


@click.command()
@click.argument("file", metavar="FILE.json")
@output_options
@plainly
def report(file: str, json_file: str | None, html_file: str | None, fail_on: str | None, quiet: bool) -> None:
    """Show a report that was saved as JSON.

    \b
      sleuth examine train.py:training --json report.json
      sleuth report report.json
      sleuth report report.json --html report.html
    """
    from sleuth.api import load

    output = Output(json_file, html_file, fail_on, quiet)
    output.check()
    output.deliver(load(Path(file)))
