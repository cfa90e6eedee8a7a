"""Which adapters there are: our own, and those that other packages declare as entry points.

An entry's name is the module that the user imports, such as `torch`, and the adapter's own name too; its value is where the
adapter stands, `package.module:ADAPTER`.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

GROUP = "sleuth.adapters"
# As pyproject.toml declares them: in a checkout the installed metadata may be older than the code, or missing. In the order in
# which they are asked for a model: on torch a model of Keras is one of torch too, and NumPy claims least.
OWN: Mapping[str, str] = {
    name: f"sleuth.adapters.{name}:ADAPTER" for name in ("jax", "keras", "mithril", "mlx", "torch", "numpy")
}


def entries() -> Mapping[str, str]:
    """By name, those from outside first. One of ours cannot be replaced from outside."""
    outside = {name: where for name, where in _outside(tuple(sys.path)).items() if name not in OWN}
    return {**outside, **OWN}


@cache
def _outside(folders: tuple[str, ...]) -> Mapping[str, str]:
    # importlib.metadata takes 10 ms to be imported and to read all entry points; this takes two, whenever `sleuth run` starts.
    if not any(_declares(Path(folder)) for folder in folders):
        return {}
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def _declares(folder: Path) -> bool:
    """Does a package that is installed here, other than sleuth itself, declare an adapter?"""
    files = (file for kind in ("dist-info", "egg-info") for file in folder.glob(f"*.{kind}/entry_points.txt"))
    return any(f"[{GROUP}]" in _text(file) for file in files if file.parent.name.split("-")[0] != "sleuth")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def loaded(name: str) -> Any:
    """The adapter of that name; its framework is imported with it."""
    module, _, attribute = entries()[name].partition(":")
    return getattr(import_module(module), attribute or "ADAPTER")


def advice_file(name: str) -> Path | None:
    """`advice.toml` beside an outside adapter: what to do about a finding, in its framework's words. Imports the adapter's parent
    packages at most, and so nothing where it stands in the first module of a package."""
    if name in OWN or name not in entries():
        return None
    try:
        spec = find_spec(entries()[name].partition(":")[0])
    except Exception:  # of somebody else's package
        return None
    file = None if spec is None or spec.origin is None else Path(spec.origin).parent / "advice.toml"
    return file if file is not None and file.is_file() else None
