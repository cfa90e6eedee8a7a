"""Flax NNX: `nnx.split` and `nnx.merge` turn the model into arrays and back."""

from collections.abc import Iterator
from typing import Any

import jax

from sleuth.adapters.jax.forms import Form, loaded, path_of
from sleuth.core.subject import call_model

MODES = (("deterministic", True), ("use_running_average", True))


class NnxForm(Form):
    @staticmethod
    def claims(model: Any) -> bool:
        nnx = loaded("flax.nnx")
        return nnx is not None and isinstance(model, nnx.Module)

    def __init__(self, model: Any, wrt: Any = None) -> None:
        nnx: Any = loaded("flax.nnx")
        self._nnx, self._model = nnx, model
        self._trained = nnx.Param if wrt is None else wrt
        self._order = [path for path, _ in _walk(nnx, model, "", (nnx.Module, nnx.Variable))]
        graph, self.params, self.rest = nnx.split(model, self._trained, ...)
        copy = nnx.merge(graph, self.params, self.rest)
        self.in_eval = _all_in_eval(nnx, copy)
        if self.in_eval:
            copy.train()
        training = nnx.split(copy, self._trained, ...)[0]
        copy.eval()
        self._graphs = {True: training, False: nnx.split(copy, self._trained, ...)[0]}

    def build(self, params: Any, rest: Any, training: bool) -> Any:
        # Anew at this level of tracing: nnx refuses to change what was made outside of it.
        params, rest = jax.tree.map(lambda leaf: leaf, (params, rest))
        return self._nnx.merge(self._graphs[training], params, rest)

    def rest_of(self, model: Any, rest: Any) -> Any:
        return self._nnx.split(model, self._trained, ...)[2]

    def get_ready(self, model: Any, inputs: Any, rest: Any) -> None:
        pass

    def call(self, model: Any, inputs: Any, rest: Any, training: bool) -> Any:
        return call_model(model, type(model).__call__, inputs)

    def modules(self, model: Any) -> list[tuple[str, Any]]:
        found: dict[int, tuple[str, Any]] = {}
        for path, module in _walk(self._nnx, model, "", (self._nnx.Module,)):
            if not isinstance(module, self._nnx.List | self._nnx.Dict):
                found.setdefault(id(module), (path, module))
        return list(found.values())

    def places(self, model: Any) -> list[tuple[str, Any]]:
        return list(_places(self._nnx, model, "", frozenset()))

    def frozen(self) -> dict[str, Any]:
        _, _, others, _ = self._nnx.split(self._model, self._trained, self._nnx.Param, ...)
        return {path_of(keys): leaf for keys, leaf in jax.tree_util.tree_flatten_with_path(others)[0]}

    def model_and_optimiser(self, params: Any, rest: Any, optimiser: Any, state: Any) -> tuple[Any, Any] | None:
        if optimiser is not None and not isinstance(optimiser, self._nnx.Optimizer):
            return None
        model = self.build(params, rest, training=True)
        if optimiser is None:
            return model, None
        own = self._nnx.Optimizer(model, optimiser.tx, wrt=self._trained)
        for variable, value in zip(self._kept(own), jax.tree.leaves(state), strict=True):
            variable[...] = value
        return model, own

    def taken_back(self, model: Any, optimiser: Any, rest: Any, state: Any) -> tuple[Any, Any, Any]:
        _, params, rest = self._nnx.split(model, self._trained, ...)
        if optimiser is not None:
            state = jax.tree.unflatten(jax.tree.structure(state), [variable[...] for variable in self._kept(optimiser)])
        return params, rest, state

    def _kept(self, optimiser: Any) -> list[Any]:
        """Where an optimiser keeps its state."""
        variable = self._nnx.Variable
        return [
            v for v in jax.tree.leaves(optimiser.opt_state, is_leaf=lambda x: isinstance(x, variable)) if isinstance(v, variable)
        ]

    def order(self) -> list[str]:
        return self._order

    @property
    def has_modes(self) -> bool:
        return bool(self._graphs[True] != self._graphs[False])


def _all_in_eval(nnx: Any, model: Any) -> bool:
    modes = [
        getattr(module, word) == means
        for _, module in _walk(nnx, model, "", (nnx.Module,))
        for word, means in MODES
        if hasattr(module, word)
    ]
    return bool(modes) and all(modes)


def _walk(nnx: Any, thing: Any, path: str, kinds: tuple[type, ...]) -> Iterator[tuple[str, Any]]:
    """In the order of assignment: nnx's own walks sort by name."""
    seen: set[int] = set()

    def enter(thing: Any, at: str) -> Iterator[tuple[str, Any]]:
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, kinds):
            yield at, thing
        for key, child in _children(nnx, thing):
            yield from enter(child, f"{at}.{key}" if at else str(key))

    yield from enter(thing, path)


def _places(nnx: Any, thing: Any, path: str, above: frozenset[int]) -> Iterator[tuple[str, Any]]:
    if id(thing) in above:  # a layer that holds itself
        return
    if isinstance(thing, nnx.Module) and not isinstance(thing, nnx.List | nnx.Dict):
        yield path, thing
    for key, child in _children(nnx, thing):
        yield from _places(nnx, child, f"{path}.{key}" if path else str(key), above | {id(thing)})


def _children(nnx: Any, thing: Any) -> list[tuple[Any, Any]]:
    if isinstance(thing, nnx.List | list | tuple):
        return list(enumerate(thing))
    if isinstance(thing, dict):
        return list(thing.items())
    if isinstance(thing, nnx.Module | nnx.Dict):
        return [(key, child) for key, child in vars(thing).items() if not key.startswith("_pytree__")]
    return []
