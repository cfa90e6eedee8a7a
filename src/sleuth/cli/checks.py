"""`sleuth checks`."""

import click

from sleuth.cli.plainly import plainly


@click.command()
@plainly
def checks() -> None:
    """List all checks, in the order in which they are asked."""
    from sleuth.checks import all_checks
    from sleuth.views.catalogue import catalogue_for_screen

    click.echo(catalogue_for_screen(all_checks()))
