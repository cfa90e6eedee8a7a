"""What to write into a script that trains a network by hand, which nobody can hear from outside: in the script's own names."""

import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from sleuth.core.runtime.place import is_users

# What functions over weights are called, by what they are given as.
FUNCTIONS = {
    "forward": ("forward", "forward_propagation", "forward_prop", "forward_pass", "predict"),
    "backward": ("backward", "backward_propagation", "backward_prop", "back_prop", "backprop", "backward_pass", "gradients"),
    "update": ("update", "update_parameters", "update_params", "step"),
}
BY_FUNCTIONS = "net = sleuth.ByHand(params, forward=forward, backward=backward)"
WHOLE = ("train_step", "training_step", "train_batch")


def advice(namespace: Mapping[str, Any]) -> str | None:
    """None where neither the script nor a module of its own uses NumPy."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not any(value is numpy for space in (namespace, *_own_modules()) for value in list(space.values())):
        return None
    made, net = _model(namespace, numpy)
    return "\n".join((
        "A network written by hand in NumPy cannot be heard from outside: nothing in it is known by its class. Put one line into "
        "the script, around its training loop or before it:",
        *([f"    {made}"] if made else []),
        f"    with sleuth.watch({net}, lr):          # then the loop, as it is; lr: its learning rate, or your optimiser",
        f"    sleuth.examine({net}, (X, y), loss=loss, optimizer=lr).show()",
    ))  # fmt: skip


def _own_modules() -> Iterator[Mapping[str, Any]]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(module, ModuleType) and isinstance(file, str) and is_users(file):
            yield vars(module)


def _model(namespace: Mapping[str, Any], numpy: ModuleType) -> tuple[str, str]:
    """(a line that makes the model, or "", and its name)."""
    own = [(name, value) for name, value in namespace.items() if not name.startswith("_")]
    objects = [name for name, value in own if _is_network(value)]
    if objects:
        return "", objects[-1]
    given = dict(_functions(own))
    if not given:
        return f"{BY_FUNCTIONS}  # put what the loop computes into functions", "net"
    weights = next((name for name, value in own if _is_weights(value, numpy)), "params")
    words = ", ".join(f"{role}={name}" for role, name in given.items())
    return f"net = sleuth.ByHand({weights}, {words})", "net"


def _is_network(value: Any) -> bool:
    """A network, rather than one of its layers: the last one that was made stands for the others."""
    if isinstance(value, type | FunctionType | ModuleType):
        return False
    kind = type(value)
    return kind.__module__ != "builtins" and all(callable(getattr(kind, name, None)) for name in ("forward", "backward"))


def _functions(own: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    names = [name for name, value in own if isinstance(value, FunctionType)]
    whole = next((name for name in names if name in WHOLE), None)
    if whole is not None:
        yield "step", whole
        return
    for role, words in FUNCTIONS.items():
        found = next((name for word in words for name in names if name == word), None)
        if found is not None:
            yield role, found


def _is_weights(value: Any, numpy: ModuleType) -> bool:
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(items) > 1 and all(isinstance(item, numpy.ndarray) and item.dtype.kind == "f" for item in items)
