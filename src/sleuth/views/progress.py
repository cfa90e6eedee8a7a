"""What is being done now, for a person who waits."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(wanted: bool | None) -> Iterator[Callable[[str], None]]:
    """A status line on stderr; by default only where a person looks at it."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("Examining") as status:
        yield lambda text: status.update(text + " …")
