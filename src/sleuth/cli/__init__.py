"""The command line: one file a command, thin over the library. Frameworks are imported only by what examines."""

import sys
from typing import Any

import click

from sleuth import __version__
from sleuth.cli.checks import checks
from sleuth.cli.compare import compare
from sleuth.cli.demo import demo
from sleuth.cli.examine import examine
from sleuth.cli.explain import explain
from sleuth.cli.plainly import Interrupted
from sleuth.cli.replay import replay
from sleuth.cli.report import report
from sleuth.cli.run import run
from sleuth.cli.ui import ui


class Commands(click.Group):
    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except Interrupted:
            # Python itself turns it into the end by a signal that shells look for.
            sys.excepthook = lambda *_: None
            raise KeyboardInterrupt from None


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="sleuth")
@click.pass_context
def main(context: click.Context) -> None:
    """Find out why a model does not train.

    \b
    Start here:
      sleuth demo                          a broken training, diagnosed
      sleuth run train.py                  your script as it is, watched
      sleuth examine train.py:training     your own: training() returns a dict with
                                           model, train, loss, optimizer
      sleuth explain double-softmax        what a finding means
      sleuth explain "loss is nan"         what a symptom points to
      sleuth examine --help                more on any command

    \b
    In Python:
      report = sleuth.examine(model, loader, loss=loss, optimizer=optimizer)
      report.show()

    \b
    Exit codes:
      0  done, whatever was found
      1  something was found, and --fail-on asked for this
      2  the input cannot be used
      3  sleuth itself failed
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (demo, run, examine, report, replay, compare, ui, checks, explain):
    main.add_command(command)
