"""The only folder that names a framework. An adapter is imported when its framework already is, never before."""

import importlib
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.core.errors import UnusableInput

if TYPE_CHECKING:
    from sleuth.core.contract.adapter import Adapter

# Packages beside the adapters.
SHARED = ("common", "listening")
# In the words of this one the checks themselves speak.
SPOKEN = "torch"
# What it alone understands, in the texts of checks: a remark in brackets, and names of its own.
REMARK = re.compile(r" \(in torch\b(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
FOREIGN = re.compile(
    r"torch|nn\.|optim\.|DataLoader|requires_grad|zero_grad|\.backward\(|state_dict|optimizer\.|\.parameters\(|\.item\(|no_grad|detach"
    r"|param_groups|autocast|model\.(train|eval|float|double|to)\(|\w_\(|scaler"
)


def available() -> "Iterator[Adapter]":
    """Adapters of the frameworks that the user has imported; NumPy, which claims least, comes last."""
    for name in sorted(_names(), key=lambda name: name == "numpy"):
        if name in sys.modules:
            with suppress(UnusableInput):  # another version of a framework is wanted; the other adapters work without it
                yield adapter_named(name)


def frameworks() -> list[str]:
    """Those that can be told apart by being imported: NumPy is imported by everybody."""
    return sorted(name for name in _names() if name != "numpy")


def _names() -> list[str]:
    return [m.name for m in pkgutil.iter_modules(__path__) if m.name not in SHARED]


def adapter_named(name: str) -> "Adapter":
    try:
        return importlib.import_module(f"{__name__}.{name}").ADAPTER
    except (ImportError, AttributeError) as error:  # a public name is gone; of private ones the adapter says it itself
        raise UnusableInput(
            f"sleuth does not fit this version of {name}: {error}. docs/versions.md says which were tried."
        ) from error


def adapter_for(model: Any) -> "Adapter":
    tried = []
    for adapter in available():
        if adapter.claims(model):
            return adapter
        tried.append(adapter.name)
    for name in frameworks():
        if name in sys.modules and name not in tried:
            adapter_named(name)  # raises, and says which version is wanted
    raise UnusableInput(
        f"a {type(model).__name__} is not a model that sleuth knows (asked: {', '.join(tried)}). "
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
    return {name: text for name, text in found.items() if text is not None}


def in_words_of(framework: str | None, name: str, fix: str, usual: str) -> str:
    """The advice of a finding of this name; `usual`: that of its check. What a finding says of its own comes first, if it can be
    understood."""
    advice = advice_in(framework).get(name)
    if framework is None or framework == SPOKEN:
        return fix
    own = REMARK.sub("", fix)
    return own if advice is None or (fix != usual and not FOREIGN.search(own)) else advice
