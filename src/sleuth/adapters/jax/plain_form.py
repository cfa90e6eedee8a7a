"""Plain functions: a pair (apply, params), or the tree of parameters alone together with a function of it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from sleuth.adapters.jax.forms import Form, accepted, is_inexact, key_word, mode_words
from sleuth.core.errors import Unsupported
from sleuth.core.subject import call_model

SEED = 0
# Flax Linen keeps what is learned here, beside running statistics and the like.
LEARNED = "params"


class TreeForm(Form):
    @staticmethod
    def claims(model: Any) -> bool:
        """Plain containers only: a list of models is a tree of arrays to JAX, too."""
        if not isinstance(model, dict | list | tuple):
            return False
        leaves = list(_plain_leaves(model))
        return any(isinstance(leaf, jax.Array) for leaf in leaves) and all(_is_number(leaf) for leaf in leaves)

    _key: str | None = None  # what the function calls the random key that it takes

    def __init__(self, model: Any) -> None:
        learned = model[LEARNED] if isinstance(model, Mapping) and len(model) > 1 and LEARNED in model else model
        inside = {id(leaf) for leaf in jax.tree.leaves(learned)}
        self._written = model  # whose dicts still have the order in which the user filled them
        flat, self._tree = jax.tree.flatten(model)
        self._trained = [is_inexact(leaf) and id(leaf) in inside for leaf in flat]
        self.params = jax.tree.unflatten(self._tree, [x if t else None for x, t in zip(flat, self._trained, strict=True)])
        self.rest: dict[str, Any] = {"arrays": [x for x, t in zip(flat, self._trained, strict=True) if not t]}

    def build(self, params: Any, rest: Any, training: bool) -> Any:
        learned, others = iter(jax.tree.leaves(params)), iter(rest["arrays"])
        return jax.tree.unflatten(self._tree, [next(learned) if t else next(others) for t in self._trained])

    def rest_of(self, model: Any, rest: Any) -> Any:
        return rest if self._key is None else {**rest, "key": jax.random.split(rest["key"])[0]}

    def get_ready(self, model: Any, inputs: Any, rest: Any) -> None:
        pass

    def call(self, model: Any, inputs: Any, rest: Any, training: bool) -> Any:
        raise Unsupported("there are only parameters, and no function that makes an output of them: give (apply, params)")

    def modules(self, model: Any) -> list[tuple[str, Any]]:
        return []

    def places(self, model: Any) -> list[tuple[str, Any]]:
        return []

    def frozen(self) -> dict[str, Any]:
        return {}

    def model_and_optimiser(self, params: Any, rest: Any, optimiser: Any, state: Any) -> tuple[Any, Any] | None:
        return None

    def taken_back(self, model: Any, optimiser: Any, rest: Any, state: Any) -> tuple[Any, Any, Any]:
        raise Unsupported("nothing was lent")

    def order(self) -> list[str]:
        return [path for path, _ in _in_order(self._written, "")]

    @property
    def calls(self) -> bool:
        return False

    @property
    def has_modes(self) -> bool:
        return False


class PairForm(TreeForm):
    @staticmethod
    def claims(model: Any) -> bool:
        if not isinstance(model, tuple) or len(model) != 2 or isinstance(model[0], type) or not _callable(model[0]):
            return False
        return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(model[1]))

    def __init__(self, model: Any) -> None:
        super().__init__(model[1])
        self._apply: Callable[..., Any] = getattr(model[0], "apply", model[0])
        self._key = key_word(self._apply)
        if self._key is not None:
            self.rest["key"] = jax.random.key(SEED)

    @property
    def has_modes(self) -> bool:
        return bool(mode_words(self._apply, True))

    def build(self, params: Any, rest: Any, training: bool) -> "Bound":
        return Bound(self, super().build(params, rest, training), rest, training)

    def call(self, model: Any, inputs: Any, rest: Any, training: bool) -> Any:
        return call_model(model, self._apply, inputs)

    def words(self, rest: Any, training: bool) -> dict[str, Any]:
        words = mode_words(self._apply, training)
        return words if self._key is None else {**words, self._key: jax.random.split(rest["key"])[1]}

    @property
    def calls(self) -> bool:
        return True


class Bound:
    """Stands for the model in a `step` of the user's own: called as `model(x)`, or taken apart as `apply, params = model`."""

    def __init__(self, form: PairForm, params: Any, rest: Any, training: bool) -> None:
        self._form, self._params, self._rest, self._training = form, params, rest, training
        self.heard: Callable[[Any], Any] = lambda output: output

    def __call__(self, *args: Any, **words: Any) -> Any:
        own = self._form.words(self._rest, self._training)
        return self.heard(self._form._apply(self._params, *args, **{**own, **words}))

    def __iter__(self) -> Iterator[Any]:
        yield lambda params, *args, **words: self.heard(self._form._apply(params, *args, **words))
        yield self._params

    def __getitem__(self, index: int) -> Any:
        return list(self)[index]


def _callable(thing: Any) -> bool:
    """A function, or an object with `apply`. A compiled model of Mithril is paired with its parameters, too."""
    foreign = callable(getattr(thing, "evaluate", None)) or callable(getattr(thing, "parameters", None))
    return not foreign and (callable(thing) or callable(getattr(thing, "apply", None)))


def _is_number(leaf: Any) -> bool:
    return leaf is None or isinstance(leaf, jax.Array | np.ndarray | int | float)


def _plain_leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        for child in tree.values():
            yield from _plain_leaves(child)
    elif isinstance(tree, list | tuple):
        for child in tree:
            yield from _plain_leaves(child)
    else:
        yield tree


def _in_order(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    children: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        children = list(tree.items())
        # JAX hands dicts back sorted by key: layer10 then comes before layer2.
        if [key for key, _ in children] == sorted(tree, key=str):
            children.sort(key=lambda child: _numbers(str(child[0])))
    elif isinstance(tree, list | tuple):
        children = list(enumerate(tree))
    for key, child in children:
        yield from _in_order(child, f"{path}.{key}" if path else str(key))
    if not children:
        yield path, tree


def _numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def takes(function: Callable[..., Any]) -> int:
    """How many arguments it takes by position."""
    kinds = [p for p in accepted(function).values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len([p for p in kinds if p.default is p.empty]) or len(kinds)
