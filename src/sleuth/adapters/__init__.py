"""The only folder that names a framework. An adapter is imported when its framework already is, never before.

Other packages add theirs by entry points (entries.py); docs/adapters.md walks through one.
"""

import re
import sys
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.adapters.entries import advice_file, entries, loaded
from sleuth.core.errors import UnusableInput

if TYPE_CHECKING:
    from sleuth.core.contract.adapter import Adapter

# In the words of this one the checks themselves speak.
SPOKEN = "torch"
# What it alone understands, in the texts of checks: a remark in brackets, and names of its own.
REMARK = re.compile(r" \(in torch\b(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
FOREIGN = re.compile(
    r"torch|nn\.|optim\.|DataLoader|requires_grad|zero_grad|\.backward\(|state_dict|optimizer\.|\.parameters\(|\.item\(|no_grad|detach"
    r"|param_groups|autocast|model\.(train|eval|float|double|to)\(|\w_\(|scaler"
)


_unusable: dict[str, str] = {}  # adapters that could not be imported, and why


def available() -> "Iterator[Adapter]":
    """Adapters of the frameworks that the user has imported; NumPy, which claims least, comes last. One that cannot be used is
    left out: where that is not because of the framework's version, which `adapter_for` tells, a warning says so once."""
    for name in entries():
        if name not in sys.modules:
            continue
        try:
            adapter = adapter_named(name)
        except UnusableInput as error:
            _unusable[name] = str(error)
            continue
        except Exception as error:
            if name not in _unusable:
                _unusable[name] = f"{type(error).__name__}: {error}"
                warnings.warn(f"sleuth does without its adapter for {name}: {_unusable[name]}", RuntimeWarning, stacklevel=3)
            continue
        yield adapter


def frameworks() -> list[str]:
    """Those that can be told apart by being imported: NumPy is imported by everybody."""
    return sorted(name for name in entries() if name != "numpy")


def adapter_named(name: str) -> "Adapter":
    """Raises whatever importing it raises."""
    from sleuth.core.contract.adapter import Adapter

    where = entries()[name]
    try:
        adapter = loaded(name)
    except (ImportError, AttributeError) as error:
        if not where.startswith(f"{__name__}."):
            raise
        # A public name is gone; of private ones the adapter says it itself.
        raise UnusableInput(
            f"sleuth does not fit this version of {name}: {error}. docs/versions.md says which were tried."
        ) from error
    if not isinstance(adapter, Adapter):
        raise UnusableInput(
            f"{where} is {type(adapter).__name__}; an object of a class that inherits sleuth's Adapter is expected."
        )
    if adapter.name != name:
        raise UnusableInput(
            f"{where} calls itself {adapter.name}; its entry point is named {name}, after the module of its framework."
        )
    return adapter


def adapter_for(model: Any) -> "Adapter":
    tried = []
    for adapter in available():
        if adapter.claims(model):
            return adapter
        tried.append(adapter.name)
    unusable = "".join(f" The adapter for {name} could not be used: {why.rstrip('.')}." for name, why in _unusable.items())
    raise UnusableInput(
        f"a {type(model).__name__} is not a model that sleuth knows (asked: {', '.join(tried)}).{unusable} "
        "Give a torch.nn.Module, or an object with forward(x), parameters() and backward()."
    )


@cache
def advice_in(framework: str | None) -> dict[str, str]:
    """What to do about a finding, by its name, in the words of this framework; where there are none, the check's own will do.

    Nothing is imported for it: a recorded run may be read where its framework is not installed.
    """
    if framework is None or framework == SPOKEN:
        return {}
    texts = tomllib.loads((Path(__file__).parent / "advice.toml").read_text(encoding="utf-8"))
    found = {name: by.get(framework, by.get("others")) for name, by in texts.items()}
    if (file := advice_file(framework)) is not None:
        found |= _own_advice(file)
    return {name: text for name, text in found.items() if text is not None}


def _own_advice(file: Path) -> dict[str, str]:
    """Of an outside adapter: check = "text". A file that cannot be read is as good as none."""
    try:
        texts = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        warnings.warn(f"sleuth cannot read {file}: {error}", RuntimeWarning, stacklevel=3)
        return {}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def in_words_of(framework: str | None, name: str, fix: str, usual: str) -> str:
    """The advice of a finding of this name; `usual`: that of its check. What a finding says of its own comes first, if it can be
    understood."""
    advice = advice_in(framework).get(name)
    if framework is None or framework == SPOKEN:
        return fix
    own = REMARK.sub("", fix)
    return own if advice is None or (fix != usual and not FOREIGN.search(own)) else advice
