"""Where runs are kept: one folder a run."""

import os
import time
from itertools import count
from pathlib import Path

RUNS = Path(".sleuth") / "runs"


def new_folder(directory: Path, name: str) -> Path:
    """Of its own also when a second watch of this process begins in the same second."""
    wanted = directory / f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name(name)}-{os.getpid()}"
    for number in count(2):
        try:
            wanted.mkdir(parents=True)
        except FileExistsError:
            if not wanted.is_dir():  # something else is in the way: whoever writes there says so
                return wanted
            wanted = wanted.with_name(f"{wanted.name.split('.')[0]}.{number}")
        except OSError:
            return wanted
        else:
            return wanted
    raise AssertionError("numbers do not end")


def file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]
