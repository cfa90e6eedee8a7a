"""Where the user wrote a class, and where it fills an attribute."""

import inspect
import re

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users


def class_line(kind: type) -> Location | None:
    try:
        file, (_, line) = inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return None
    return locate(file, line) if file and is_users(file) else None


def assignment(kind: type, attribute: str) -> Location | None:
    """`self.attribute = …` in a method of this class or of one above it."""
    for owner in kind.__mro__:
        for method in vars(owner).values():
            if not inspect.isfunction(method) or not is_users(method.__code__.co_filename):
                continue
            try:
                lines, start = inspect.getsourcelines(method)
            except (OSError, TypeError):
                continue
            own = re.escape(method.__code__.co_varnames[0]) if method.__code__.co_varnames else "self"
            pattern = re.compile(rf"\b{own}\.{re.escape(attribute)}\b\s*(:[^=]+)?=[^=]")
            for offset, text in enumerate(lines):
                if pattern.search(text):
                    return locate(method.__code__.co_filename, start + offset)
    return None
