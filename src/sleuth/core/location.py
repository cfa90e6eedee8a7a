"""A place in the user's code."""

import linecache
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import NamedTuple


@dataclass(frozen=True)
class Location:
    file: str
    line: int
    text: str = ""  # the source line as it stood when it was seen

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short_file(self) -> str:
        """Relative where it lies below the current folder: what a person would type, and the same on every machine."""
        path = Path(self.file)
        try:
            return str(path.relative_to(Path.cwd()))
        except (ValueError, OSError):  # it lies elsewhere, or the current folder is gone
            return self.file


def locate(file: str, line: int) -> Location:
    return Location(file, line, linecache.getline(file, line).strip())


class Spot(NamedTuple):
    """An instruction of the user's code."""

    code: CodeType
    instruction: int

    @property
    def location(self) -> Location | None:
        lines = self.code.co_lines()
        line = next((line for begin, end, line in lines if begin <= self.instruction < end), None)
        return None if line is None else locate(self.code.co_filename, line)
