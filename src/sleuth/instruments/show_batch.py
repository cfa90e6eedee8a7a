"""A look at a batch: images with their labels, tokens, rows of a table, signals."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters import adapter_named, available
from sleuth.core.contract.adapter import Adapter, Inspects
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Subject, take_apart
from sleuth.core.words import kind_of
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

MOST = 16
# Channels of a picture: grey, grey with alpha, colour, colour with alpha.
CHANNELS = (1, 2, 3, 4)
# A shorter side than this is a table or a sequence, not a picture.
LEAST_SIDE = 4
# Longer rows of real numbers than this are rather a signal than columns of a table.
LONG = 128


@dataclass(frozen=True, eq=False)
class Column:
    """One array of the batch. Kinds: images, signals, table, tokens, text, numbers (one for each sample)."""

    name: str
    kind: str
    values: Any  # an array with samples first, or a list of texts
    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False)
class ShownBatch(Result):
    columns: tuple[Column, ...]  # of the inputs
    labels: tuple[str, ...] | None  # for each sample; None: the target is not one number a sample
    target: Column | None
    samples: int
    most: int
    decode: Callable[[Any], str] | None = None

    @property
    def kind(self) -> str:
        """Of the first input."""
        return self.columns[0].kind

    def to_dict(self) -> dict[str, Any]:
        def told(column: Column) -> dict[str, Any]:
            return plain({k: getattr(column, k) for k in ("name", "kind", "dtype", "shape", "low", "high")})

        return {
            "kind": self.kind,
            "samples": self.samples,
            "inputs": [told(c) for c in self.columns],
            "target": None if self.target is None else told(self.target),
            "labels": None if self.labels is None else list(self.labels),
        }

    def plot(self) -> Any:
        from sleuth.instruments.show_batch_view import draw

        return draw(self)

    def __str__(self) -> str:
        from sleuth.instruments.show_batch_view import text

        return text(self)


def show_batch(
    batch: Any,
    *,
    classes: Sequence[str] | Mapping[int, str] | None = None,
    decode: Callable[[Any], str] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    most: int = MOST,
) -> ShownBatch:
    """The first `most` samples of a batch, or of the first batch of a loader or `sleuth.Subject`.

    What is drawn follows from shape and dtype: images, signals, token ids, texts, tables. `classes` names the labels, `decode`
    turns the ids of one sample into text, `split` maps a batch to (inputs, target).
    """
    split = split or (batch.split if isinstance(batch, Subject) else None)
    adapters = [*available()] or [adapter_named("numpy")]
    parts = take_apart(_first(batch, adapters), split)
    adapter = next((a for a in adapters if _arrays(parts.raw, a)), adapters[0])
    columns = _columns(parts.inputs, adapter, "input")
    if not columns:
        raise UnusableInput(f"{kind_of(parts.inputs)} holds no array and no text that could be shown.")
    targets = _columns(parts.target, adapter, "target")
    samples = len(columns[0].values)
    target = targets[0] if targets else None
    return ShownBatch(columns, _labels(target, samples, classes), target, samples, min(most, samples), decode)


def _first(batch: Any, adapters: Sequence[Adapter]) -> Any:
    source = batch.train if isinstance(batch, Subject) else batch
    if isinstance(source, tuple | list | Mapping) or any(a.is_array(source) for a in adapters) or hasattr(source, "_fields"):
        return source
    from sleuth.probes.lab.sources import open_source

    adapter = next((a for a in adapters if a.batches(source, MOST) is not None), adapters[0])
    with ExitStack() as stack:
        stack.enter_context(random_preserved(source))
        for each in adapters:  # the source may draw from the random states of any of them
            if isinstance(each, Inspects):
                stack.enter_context(each.looking(source))
        found = next(iter(open_source(source, adapter, "batch").batches), None)
    if found is None:
        raise UnusableInput(f"{kind_of(source)} yielded no batch.")
    return found


def _arrays(tree: Any, adapter: Adapter) -> bool:
    return next(leaves(tree, adapter.is_array), None) is not None


def _columns(tree: Any, adapter: Adapter, role: str) -> tuple[Column, ...]:
    texts = _texts(tree)
    if texts is not None:
        return (Column(role, "text", texts, "text", (len(texts),)),)
    return tuple(
        _column(path or role, adapter.values(array), adapter.dtype(array)) for path, array in leaves(tree, adapter.is_array)
    )


def _texts(tree: Any) -> list[str] | None:
    return list(tree) if isinstance(tree, tuple | list) and tree and all(isinstance(t, str) for t in tree) else None


def _column(name: str, values: np.ndarray, dtype: str) -> Column:
    values = values.reshape(1) if values.ndim == 0 else values
    real = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    bounds = (float(real.min()), float(real.max())) if real.size and values.dtype.kind in "fiub" else (None, None)
    return Column(name, _kind(values), values, dtype, tuple(values.shape), *bounds)


def _kind(values: np.ndarray) -> str:
    shape = values.shape
    if values.ndim == 1:
        return "numbers"
    if values.ndim == 2:
        if values.dtype.kind in "iu":
            return "tokens"
        return "signals" if shape[1] > LONG else "table"
    if values.ndim == 4 and (shape[1] in CHANNELS or shape[-1] in CHANNELS):
        return "images"
    if values.ndim == 3:
        sides = shape[1:]
        if min(sides) >= LEAST_SIDE and (values.dtype.kind == "u" or sides[0] == sides[1]):
            return "images"
        return "signals"
    return "table" if values.ndim < 4 else "images"


def _labels(target: Column | None, samples: int, classes: Sequence[str] | Mapping[int, str] | None) -> tuple[str, ...] | None:
    if target is None:
        return None
    values = target.values if target.kind == "text" else target.values.reshape(-1)
    if len(values) != samples:
        return None
    return tuple(_label(v, classes) for v in values)


def _label(value: Any, classes: Sequence[str] | Mapping[int, str] | None) -> str:
    if isinstance(value, str):
        return value
    number = value.item()
    if classes is None or isinstance(number, float):
        return f"{number:.4g}" if isinstance(number, float) else str(number)
    try:
        return str(classes[number])
    except (KeyError, IndexError):
        return f"{number} (no class)"
