"""One file a check; the folder is its stage. Checks are discovered, never listed."""

import importlib
import pkgutil
from functools import cache

from sleuth.core.check import Check


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, in the order of its code within the order of the stages."""
    found = []
    for info in pkgutil.walk_packages(__path__, f"{__name__}."):
        module = importlib.import_module(info.name)
        found += [value for value in vars(module).values() if isinstance(value, Check)]
    return tuple(sorted(found, key=lambda c: (c.stage.rank, c.code)))
