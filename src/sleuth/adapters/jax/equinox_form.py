"""Equinox: the model is itself a tree. It is usually written for one sample and put under `jax.vmap`."""

from collections.abc import Iterator
from typing import Any

import jax

from sleuth.adapters.jax.arrays import is_array
from sleuth.adapters.jax.forms import Form, is_inexact, key_word, loaded
from sleuth.core.errors import Unsupported
from sleuth.core.subject import call_model

SEED = 0


class EquinoxForm(Form):
    @staticmethod
    def claims(model: Any) -> bool:
        eqx = loaded("equinox")
        return eqx is not None and isinstance(model, eqx.Module)

    def __init__(self, model: Any) -> None:
        eqx: Any = loaded("equinox")
        self._eqx = eqx
        self.params, other = eqx.partition(model, is_inexact)
        arrays, self._static = eqx.partition(other, eqx.is_array)
        self._key = key_word(type(model).__call__) if callable(model) else None
        self.rest = {"arrays": arrays} if self._key is None else {"arrays": arrays, "key": jax.random.key(SEED)}
        self._batched: bool | None = None

    def build(self, params: Any, rest: Any, training: bool) -> Any:
        model = self._eqx.combine(params, rest["arrays"], self._static)
        return model if training else self._eqx.nn.inference_mode(model)

    def rest_of(self, model: Any, rest: Any) -> Any:
        return rest if self._key is None else {**rest, "key": jax.random.split(rest["key"])[0]}

    def get_ready(self, model: Any, inputs: Any, rest: Any) -> None:
        if self._batched is None:
            self._batched = not self._takes_samples(model, inputs, rest)

    def call(self, model: Any, inputs: Any, rest: Any, training: bool) -> Any:
        """As written for one sample, where the shapes allow it; otherwise for the batch as a whole."""
        self.get_ready(model, inputs, rest)
        return self._whole(model, inputs, rest) if self._batched else self._by_sample(model, inputs, rest)

    def _takes_samples(self, model: Any, inputs: Any, rest: Any) -> bool:
        try:
            jax.eval_shape(lambda i: self._by_sample(model, i, rest), inputs)
        except Exception:  # whatever the user's model refuses a single sample with
            return _refuses(lambda i: self._whole(model, i, rest), inputs)
        return True

    def _whole(self, model: Any, inputs: Any, rest: Any) -> Any:
        words = {} if self._key is None else {self._key: jax.random.split(rest["key"])[1]}
        return call_model(lambda *a, **k: model(*a, **k, **words), type(model).__call__, inputs)

    def _by_sample(self, model: Any, inputs: Any, rest: Any) -> Any:
        if self._key is None:
            return jax.vmap(lambda i: call_model(model, type(model).__call__, i))(inputs)
        count = len(next(leaf for leaf in jax.tree.leaves(inputs) if is_array(leaf)))
        keys = jax.random.split(jax.random.split(rest["key"])[1], count)
        word = self._key
        return jax.vmap(lambda i, key: call_model(lambda *a, **k: model(*a, **k, **{word: key}), type(model).__call__, i))(
            inputs, keys
        )

    def modules(self, model: Any) -> list[tuple[str, Any]]:
        return list(_walk(self._eqx, model, ""))

    def places(self, model: Any) -> list[tuple[str, Any]]:
        return self.modules(model)

    def frozen(self) -> dict[str, Any]:
        return {}

    def model_and_optimiser(self, params: Any, rest: Any, optimiser: Any, state: Any) -> tuple[Any, Any] | None:
        return None

    def taken_back(self, model: Any, optimiser: Any, rest: Any, state: Any) -> tuple[Any, Any, Any]:
        raise Unsupported("nothing was lent")

    def order(self) -> list[str]:
        return list(self.flat_paths())

    @property
    def has_modes(self) -> bool:
        """Does any layer know the two apart?"""
        taken: list[Any] = [jax.tree.flatten(t) for t in (self._static, self._eqx.nn.inference_mode(self._static))]
        (flags, tree), (quiet, other) = taken
        return bool(tree != other) or any(one is not two for one, two in zip(flags, quiet, strict=True))


def _refuses(call: Any, inputs: Any) -> bool:
    try:
        jax.eval_shape(call, inputs)
    except Exception:
        return True
    return False


def _walk(eqx: Any, thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, eqx.Module):
        yield path, thing
        children = [(name, getattr(thing, name, None)) for name in type(thing).__dataclass_fields__]
    elif isinstance(thing, dict):
        children = list(thing.items())
    elif isinstance(thing, list | tuple):
        children = list(enumerate(thing))
    else:
        return
    for key, child in children:
        yield from _walk(eqx, child, f"{path}.{key}" if path else str(key))
