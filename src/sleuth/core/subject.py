"""What is examined: the user's own objects, as they were handed over."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

TARGET_KEYS = ("label", "labels", "target", "targets", "y")


@dataclass(frozen=True)
class Subject:
    """`train` and `validation`: a loader, a dataset, any iterable of batches, or arrays `(X, y)`."""

    model: Any
    train: Any
    loss: Callable[..., Any] | None = None
    optimizer: Any = None
    validation: Any = None
    step: Callable[[Any, Any], Any] | None = None  # step(model, batch) -> loss, instead of `loss`
    split: Callable[[Any], tuple[Any, Any]] | None = None  # batch -> (inputs, target)
    name: str = ""
    reference: Any = None  # the same model elsewhere: a model or a Subject of any framework
    # (save, load): save(model, optimizer) -> saved; load(saved, model, optimizer), which changes both in place.
    checkpoint: tuple[Callable[..., Any], Callable[..., None]] | None = None
    # With a model that returns its loss: what it returns -> its answers. Then it cannot be called without its target.
    answers: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Parts:
    """A batch taken apart. `target` is None when none can be told."""

    inputs: Any
    target: Any
    raw: Any


@dataclass(frozen=True)
class Usage:
    """What a step of the user's own does with the arrays of a raw batch, by their paths in it."""

    inputs: tuple[str, ...]  # the model is given these
    targets: tuple[str, ...]  # the loss compares the outputs with these


def take_apart(batch: Any, split: Callable[[Any], tuple[Any, Any]] | None = None) -> Parts:
    """A pair is (inputs, target); in longer tuples the last is the target; in mappings a key such as `labels`."""
    if split is not None:
        inputs, target = split(batch)
        return Parts(inputs, target, batch)
    if isinstance(batch, Mapping):
        return _from_mapping(batch, batch)
    if is_dataclass(batch) and not isinstance(batch, type):
        return _from_mapping({f.name: getattr(batch, f.name) for f in fields(batch)}, batch)
    if isinstance(batch, tuple | list) and hasattr(batch, "_fields"):
        return _from_mapping(dict(zip(batch._fields, batch, strict=True)), batch)
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return Parts(batch[0], batch[1], batch)
    if isinstance(batch, tuple | list) and len(batch) > 2:
        return Parts(tuple(batch[:-1]), batch[-1], batch)
    if isinstance(batch, tuple | list) and len(batch) == 1:
        return Parts(batch[0], None, batch)
    return Parts(batch, None, batch)


def _from_mapping(items: Mapping[str, Any], raw: Any) -> Parts:
    key = next((k for k in TARGET_KEYS if k in items), None)
    inputs = {k: v for k, v in items.items() if k != key}
    target = None if key is None else items[key]
    if len(inputs) == 1 and key is not None:
        return Parts(next(iter(inputs.values())), target, raw)
    return Parts(inputs, target, raw)


def call_model(model: Callable[..., Any], forward: Callable[..., Any], inputs: Any) -> Any:
    """Call as the user's loop would: tuples become arguments, mappings become keywords where the signature takes them."""
    if isinstance(inputs, tuple) and not hasattr(inputs, "_fields"):  # a named tuple, such as a PackedSequence, is one argument
        return model(*inputs)
    if isinstance(inputs, Mapping) and _takes_keywords(forward, inputs):
        return model(**inputs)
    return model(inputs)


def _takes_keywords(forward: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    parameters = inspect.signature(forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return True
    return all(isinstance(k, str) and k in parameters for k in inputs)
