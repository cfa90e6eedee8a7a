"""The sick and the healthy case of a check and what sleuth said of them, as `./dev docs` wrote them into the package."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@dataclass(frozen=True)
class Example:
    story: str
    sick: str  # code
    changes: str  # the lines in which the healthy case differs, - before and + after
    finding: str  # the first culprit of the sick case's report
    data: Mapping[str, str] = field(default_factory=dict)  # what the functions that load data give


@cache
def example(name: str) -> Example | None:
    """None for a check that has none, such as one that is being written."""
    return read(files("sleuth.views").joinpath("examples", f"{name}.toml"))


def read(file: Traversable) -> Example | None:
    return Example(**tomllib.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None
