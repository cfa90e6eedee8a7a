"""The user's line that makes a layer or gives a weight its values: the one in its owner's class that fills the attribute."""

import linecache
import re
from types import FrameType
from typing import Any

import mlx.nn as nn

from sleuth.adapters.common.assignment import assignment, class_line
from sleuth.adapters.mlx.created_at import line_of
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

FREEZES = re.compile(r"\.freeze\(")


def layer_line(model: nn.Module, path: str) -> Location | None:
    """Where it was made, if that was heard; else of the innermost part of the path that a class of the user's own holds as an
    attribute."""
    owner: Any = model
    found = None
    for part in path.split(".") if path else ():
        if isinstance(owner, nn.Module):
            found = assignment(type(owner), part) or found
            owner = owner.get(part)
        else:
            owner = owner[int(part)] if isinstance(owner, list) and part.isdigit() else owner.get(part) if owner else None
    made = line_of(owner) if isinstance(owner, nn.Module) else None
    return made or (found if path else class_line(type(model)))


def freezing_line(frame: FrameType | None) -> Location | None:
    """The line that freezes, in the files that the call comes from: only where there is one."""
    files: dict[str, None] = {}
    while frame is not None:
        files[frame.f_code.co_filename] = None
        frame = frame.f_back
    lines = [(file, n, text) for file in files if is_users(file) for n, text in enumerate(linecache.getlines(file), 1)]
    found = [(file, n) for file, n, text in lines if FREEZES.search(text)]
    return locate(*found[0]) if len(found) == 1 else None


def function_line(function: Any) -> Location | None:
    """Where a function of the user's own begins."""
    ways = (function, getattr(type(function), "__call__", None))  # noqa: B004
    code = next((c for way in ways if (c := getattr(way, "__code__", None)) is not None), None)
    return locate(code.co_filename, code.co_firstlineno) if code is not None and is_users(code.co_filename) else None
