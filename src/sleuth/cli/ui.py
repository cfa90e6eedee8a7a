"""`sleuth ui [FOLDER]`."""

import importlib.util
from pathlib import Path

import click

from sleuth.cli.plainly import plainly
from sleuth.core.errors import UnusableInput

NEEDED = ("starlette", "uvicorn", "plotly")


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen at; without it, a free one from 8877 on.")
@plainly
def ui(folder: Path | None, port: int | None) -> None:
    """Look at runs in a browser, also while they go on: verdicts, curves, layers, and runs side by side.

    FOLDER holds runs, is a run, or is a project with runs in .sleuth/runs; without it, that of the current folder is taken.
    The server listens on this machine alone and changes nothing. Open the address that it prints: it holds a token.

    \b
      sleuth ui
      sleuth ui ~/experiments/.sleuth/runs
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInput(f"the dashboard needs {' and '.join(missing)}: pip install 'sleuth[ui]'")
    if folder is not None and not folder.is_dir():
        raise UnusableInput(f"there is no folder {folder}; name one that holds runs, such as .sleuth/runs.")
    from sleuth.session.run_folder import RUNS
    from sleuth.ui.server import serve

    serve(folder or RUNS, port)
