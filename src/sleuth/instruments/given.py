"""What an instrument was given: a model whose adapter can be asked, and what to call it with."""

import inspect
from collections.abc import Mapping
from typing import Any

from sleuth.adapters import adapter_for
from sleuth.core.contract.adapter import Adapter, Attends, Credits, Inspects, Routes, Shows
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Subject, take_apart
from sleuth.core.words import kind_of

CANNOT: dict[type, str] = {
    Routes: "have no graph that can be drawn",
    Shows: "have no filters and maps that can be shown",
    Credits: "cannot be asked which part of an input speaks for a class",
    Attends: "have no attention that can be seen",
}
HOW = "Give arrays as the model takes them, a shape such as (32, 3, 64, 64), or a loader."


class Given:
    """`inputs` is None where none were given."""

    def __init__(self, model: Any, inputs: Any = None, dtype: str | None = None) -> None:
        subject = model if isinstance(model, Subject) else None
        self.model = subject.model if subject is not None else model
        self.adapter: Adapter = adapter_for(self.model)
        if not isinstance(self.adapter, Inspects):
            raise UnusableInput(f"models of {self.adapter.name} cannot be looked at.")
        self.inspects: Inspects = self.adapter
        wanted = subject.train if subject is not None and inputs is None else inputs
        self.made = False  # from a shape
        self.inputs = None if wanted is None else self._resolve(wanted, dtype, subject)

    def lacks(self, capability: type) -> UnusableInput:
        return UnusableInput(f"models of {self.adapter.name} {CANNOT[capability]}: see docs/frameworks.md.")

    def required(self) -> Any:
        if self.inputs is None:
            raise UnusableInput(f"something to call the model with is missing. {HOW}")
        return self.inputs

    @property
    def name(self) -> str:
        return type(self.model).__name__

    def _make(self, shape: Any, dtype: str | None) -> Any:
        self.made = True
        return self.inspects.made(self.model, tuple(shape), dtype)

    def _resolve(self, wanted: Any, dtype: str | None, subject: Subject | None) -> Any:
        if is_shape(wanted):
            return self._make(wanted, dtype)
        if isinstance(wanted, Mapping) and wanted and all(is_shape(v) for v in wanted.values()):
            return {k: self._make(v, dtype) for k, v in wanted.items()}
        if isinstance(wanted, tuple | list) and wanted and all(is_shape(v) for v in wanted):
            return tuple(self._make(v, dtype) for v in wanted)
        if subject is not None and wanted is subject.train:
            return self._first(wanted, subject)
        if next(leaves(wanted, self.adapter.is_array), None) is not None:
            return self._without_target(wanted)
        if hasattr(wanted, "__iter__") or self.adapter.batches(wanted, 1) is not None:
            return self._first(wanted, Subject(self.model, wanted))
        raise UnusableInput(f"{kind_of(wanted)} is nothing to call the model with. {HOW}")

    def _first(self, source: Any, subject: Subject) -> Any:
        from sleuth.probes.lab.sources import open_source

        with self.inspects.looking(source):
            batch = next(iter(open_source(source, self.adapter, "inputs").batches), None)
        if batch is None:
            raise UnusableInput(f"{kind_of(source)} yielded no batch. {HOW}")
        return take_apart(batch, subject.split).inputs

    def _without_target(self, wanted: Any) -> Any:
        """A batch `(x, y)` where the model takes one argument: y is what it is trained on, not what it is given."""
        if not isinstance(wanted, tuple | list) or len(wanted) != 2 or not all(map(self.adapter.is_array, wanted)):
            return wanted
        x, y = wanted
        whole = not self.adapter.dtype(y).startswith(("float", "bfloat", "complex"))
        return x if self._takes_one() and (whole or y.ndim < x.ndim) else wanted

    def _takes_one(self) -> bool:
        parameters = inspect.signature(getattr(self.model, "forward", self.model)).parameters.values()
        places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return len(places) == 1 and not any(p.kind is p.VAR_POSITIONAL for p in parameters)


def is_shape(thing: Any) -> bool:
    return isinstance(thing, tuple | list) and bool(thing) and all(isinstance(n, int) and not isinstance(n, bool) for n in thing)
