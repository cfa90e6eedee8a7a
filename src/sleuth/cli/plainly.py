"""Every way a command can end, as one message and one exit code."""

import functools
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import click

import sleuth
from sleuth.core.errors import UnusableInput

UNUSABLE = 2
OWN_FAILURE = 3
INTERRUPTED = 130  # what a shell expects of a program that Ctrl-C ended
TRACEBACK = "SLEUTH_TRACEBACK"

P = ParamSpec("P")


class Interrupted(BaseException):
    """The user's script was left by Ctrl-C, and everything has been said: the process ends as Python ends it."""


def plainly(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into a sentence on stderr: no traceback of ours in the user's face."""

    @functools.wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        try:
            command(*args, **options)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except UnusableInput as error:
            _end(f"sleuth: {error}", UNUSABLE)
        except KeyboardInterrupt:
            _end("sleuth: interrupted before there was anything to report.", INTERRUPTED)
        except Exception as error:  # a fault of ours must not look like a fault of the user's
            _end(own_failure(error), OWN_FAILURE)

    return run


def own_failure(error: Exception) -> str:
    lines = [
        f"sleuth itself failed: {type(error).__name__}: {error}",
        f"  {_our_line(error)}",
        "This is a fault of sleuth, not of your training. Your files are as they were.",
        f"Please report it with the text that {TRACEBACK}=1 in front of the same command prints;",
        "until then, --select and --ignore let you leave a part out.",
    ]
    if os.environ.get(TRACEBACK):
        lines += ["", *traceback.format_exception(error)]
    return "\n".join(lines)


def _our_line(error: Exception) -> str:
    folder = Path(sleuth.__file__).parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(folder)]
    if not frames:
        return f"in sleuth {sleuth.__version__}"
    file = Path(frames[-1].filename).relative_to(folder.parent)
    return f"in {file}:{frames[-1].lineno}, sleuth {sleuth.__version__}"


def _end(message: str, code: int) -> None:
    click.echo(message, err=True)
    raise click.exceptions.Exit(code)
