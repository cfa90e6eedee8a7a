"""Which layer an operation belongs to: while the model is traced, each call of a layer leaves its number in what it computes."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
from jax.ad_checkpoint import checkpoint_name

from sleuth.adapters.jax.arrays import is_array
from sleuth.core.runtime.tree import map_arrays

if TYPE_CHECKING:
    from sleuth.adapters.jax.inspecting.layer_calls import Follower

SCOPE = "sleuth-"


@dataclass(frozen=True)
class Visit:
    """One call of a layer."""

    path: str
    module: Any


@dataclass
class Marks:
    visits: list[Visit] = field(default_factory=list)
    failed_in: str | None = None  # the innermost layer that an exception left
    follower: "Follower | None" = None  # is told of every call

    def mark(self, tree: Any, visit: int) -> Any:
        """The same values, recognisable in the jaxpr as what this call returned."""
        return map_arrays(tree, lambda a: checkpoint_name(a, f"{SCOPE}{visit}"), is_array)

    def returned(self, path: str, module: Any, output: Any) -> Any:
        self.visits.append(Visit(path, module))
        return self.mark(output, len(self.visits) - 1)

    @contextmanager
    def listening(self, modules: list[tuple[str, Any]]) -> Iterator[None]:
        """The classes' own `__call__` is back on every way out."""
        paths = {id(module): path for path, module in modules}
        kinds = {type(module) for _, module in modules if callable(module)}
        before = {kind: kind.__dict__.get("__call__") for kind in kinds}
        try:
            for kind in kinds:
                type.__setattr__(kind, "__call__", self._listener(kind.__call__, paths))
            yield
        finally:
            for kind, call in before.items():
                if call is None:
                    type.__delattr__(kind, "__call__")
                else:
                    type.__setattr__(kind, "__call__", call)

    def _listener(self, call: Any, paths: dict[int, str]) -> Any:
        @functools.wraps(call)
        def listened(module: Any, *args: Any, **words: Any) -> Any:
            path = paths.get(id(module))
            if path is None or getattr(call, "__sleuth__", False):
                return call(module, *args, **words)
            self.visits.append(Visit(path, module))
            visit = len(self.visits) - 1
            if self.follower is not None:
                self.follower.enter(visit, args, words)
            output, finished = None, False
            try:
                with jax.named_scope(f"{SCOPE}{visit}"):
                    output = self.mark(call(module, *args, **words), visit)
                finished = True
                return output
            except Exception:
                self.failed_in = self.failed_in if self.failed_in is not None else path
                raise
            finally:
                if self.follower is not None:
                    self.follower.leave(visit, output, finished=finished)

        listened.__sleuth__ = True  # type: ignore[attr-defined]
        return listened
