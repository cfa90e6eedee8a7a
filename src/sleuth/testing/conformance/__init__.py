"""What every adapter must do, as rules that run on an adapter and the kit of its framework. NumPy is the reference.

An author of an adapter parametrises a test over `rules()`; a rule of a capability that the adapter lacks does not apply.
"""

import importlib
import pkgutil
from collections.abc import Iterable

from sleuth.core.contract.adapter import Adapter
from sleuth.testing.conformance.adapters import CAPABILITIES
from sleuth.testing.conformance.rule import Rule

__all__ = ["Rule", "capabilities", "matrix", "rules"]


def rules() -> tuple[Rule, ...]:
    """Every rule of this folder."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Rule))


def capabilities(adapter: Adapter) -> dict[str, bool]:
    return {kind.__name__: isinstance(adapter, kind) for kind in CAPABILITIES}


def matrix(adapters: Iterable[Adapter]) -> str:
    """Adapter × capability, as a text table."""
    lines = [f"{'':10}" + "".join(f"{kind.__name__:>12}" for kind in CAPABILITIES)]
    for adapter in adapters:
        lines.append(f"{adapter.name:10}" + "".join(f"{'yes' if has else '-':>12}" for has in capabilities(adapter).values()))
    return "\n".join(lines)
