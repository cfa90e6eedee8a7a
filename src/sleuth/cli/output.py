"""What happens to a report: shown, written to files, turned into an exit code."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sleuth.core.errors import UnusableInput
from sleuth.core.stage import Severity

if TYPE_CHECKING:
    from sleuth.core.report import Report

F = TypeVar("F", bound=Callable[..., Any])

STDOUT = "-"
FOUND = 1


@dataclass(frozen=True)
class Output:
    json_file: str | None
    html_file: str | None
    fail_on: str | None
    quiet: bool

    @property
    def to_stdout(self) -> bool:
        return STDOUT in (self.json_file, self.html_file)

    def check(self) -> None:
        """Before minutes of work: can the files be written?"""
        for file in (self.json_file, self.html_file):
            if file is None or file == STDOUT:
                continue
            path = Path(file)
            if path.is_dir():
                raise UnusableInput(f"{file} is a folder; name a file in it, such as {path / 'report'}.")
            if not path.absolute().parent.is_dir():
                raise UnusableInput(f"the report cannot be written to {file}: there is no folder {path.parent}.")
            if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
                raise UnusableInput(f"the report cannot be written to {file}: writing there is not allowed.")

    def deliver(self, report: "Report") -> None:
        """The screen first: whatever happens to the files, the answer has been read."""
        if not (self.quiet or self.to_stdout):
            report.show()
        self.write(report)
        if self.is_failed_by(report):
            raise click.exceptions.Exit(FOUND)

    def write(self, report: "Report") -> None:
        write(self.json_file, report.to_json)
        write(self.html_file, report.to_html)

    def is_failed_by(self, report: "Report") -> bool:
        return bool(self.fail_on) and any(not Severity(self.fail_on) < f.severity for f in report.findings)


def write(file: str | None, text: Callable[[], str]) -> None:
    if file == STDOUT:
        # Bytes: JSON is UTF-8 whatever the console prefers.
        click.echo((text() + "\n").encode("utf-8", "backslashreplace"), nl=False)
    elif file is not None:
        try:
            Path(file).write_text(text() + "\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UnusableInput(f"the report cannot be written to {file}: {error.strerror or error}.") from None


def output_options(command: F) -> F:
    """--json, --html, --fail-on and --quiet, for every command that ends with a report."""
    for option in (
        click.option("--quiet", "-q", is_flag=True, help="Print neither report nor progress; messages still go to stderr."),
        click.option(
            "--fail-on",
            type=click.Choice([Severity.WARNING.value, Severity.ERROR.value]),
            help="Exit with 1 when something this bad, or worse, was found. For scripts and CI.",
        ),
        click.option("--html", "html_file", metavar="FILE", help="Also write the report as HTML (- for standard output)."),
        click.option("--json", "json_file", metavar="FILE", help="Also write the report as JSON (- for standard output)."),
    ):
        command = option(command)
    return command
