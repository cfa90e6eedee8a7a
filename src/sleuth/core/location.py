"""A place in the user's code."""

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    file: str
    line: int
    text: str = ""  # the source line as it stood when it was seen

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def locate(file: str, line: int) -> Location:
    return Location(file, line, linecache.getline(file, line).strip())
