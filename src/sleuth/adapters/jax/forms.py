"""The ways in which models are written: each is taken apart into arrays, and put together again inside a traced function."""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.core.errors import Unsupported

# Parameters of a call that say whether it is a training step; True means so.
TRAINING_WORDS = {"train": True, "training": True, "is_training": True, "deterministic": False, "inference": False}
KEY_WORDS = ("key", "rng", "rng_key", "prng_key")


class Form(ABC):
    """`params` is what the gradient is taken by, in the user's own tree; `rest` are all other arrays of the model."""

    params: Any
    rest: Any

    @abstractmethod
    def build(self, params: Any, rest: Any, training: bool) -> Any:
        """The model with these arrays."""

    @abstractmethod
    def rest_of(self, model: Any, rest: Any) -> Any:
        """What is to be kept for the next call, after this one."""

    @abstractmethod
    def get_ready(self, model: Any, inputs: Any, rest: Any) -> None:
        """Before a call that is listened to: whatever is to be tried out first is no part of it."""

    @abstractmethod
    def call(self, model: Any, inputs: Any, rest: Any, training: bool) -> Any: ...

    @abstractmethod
    def modules(self, model: Any) -> list[tuple[str, Any]]:
        """Every layer with its path, in the order of definition, each after the one that holds it; the root has the path ""."""

    @abstractmethod
    def places(self, model: Any) -> list[tuple[str, Any]]:
        """The same, with a layer that stands at several places listed at each."""

    @abstractmethod
    def order(self) -> list[str]:
        """Paths of parameters as the user wrote them down, others among them."""

    @abstractmethod
    def frozen(self) -> dict[str, Any]:
        """What could be learned, and is left out of `params`: path → array."""

    @abstractmethod
    def model_and_optimiser(self, params: Any, rest: Any, optimiser: Any, state: Any) -> tuple[Any, Any] | None:
        """The model with these arrays and an optimiser with this state, where both are objects; None where they are values."""

    @abstractmethod
    def taken_back(self, model: Any, optimiser: Any, rest: Any, state: Any) -> tuple[Any, Any, Any]:
        """(params, rest, state) of what was lent."""

    @property
    def calls(self) -> bool:
        """Can the model be called by itself?"""
        return True

    @property
    @abstractmethod
    def has_modes(self) -> bool:
        """Is there anything that training and evaluation do differently?"""

    def flat_paths(self) -> tuple[str, ...]:
        """Of the leaves of `params`, in JAX's order."""
        return tuple(path_of(keys) for keys, _ in jax.tree_util.tree_flatten_with_path(self.params)[0])

    def paths(self) -> tuple[str, ...]:
        """The same in the order of definition."""
        rank = {path: i for i, path in enumerate(self.order())}
        return tuple(sorted(self.flat_paths(), key=lambda path: rank.get(path, len(rank))))


def form_of(model: Any, optimiser: Any = None) -> Form:
    from sleuth.adapters.jax.equinox_form import EquinoxForm
    from sleuth.adapters.jax.nnx_form import NnxForm
    from sleuth.adapters.jax.plain_form import PairForm, TreeForm

    if NnxForm.claims(model):
        return NnxForm(model, getattr(optimiser, "wrt", None))
    for kind in (EquinoxForm, PairForm, TreeForm):
        if kind.claims(model):
            return kind(model)
    raise Unsupported(f"a {type(model).__name__} is not a model of JAX that sleuth knows")


def claimed(model: Any) -> bool:
    from sleuth.adapters.jax.equinox_form import EquinoxForm
    from sleuth.adapters.jax.nnx_form import NnxForm
    from sleuth.adapters.jax.plain_form import PairForm, TreeForm

    if any(kind.__module__.split(".")[0] == "keras" for kind in type(model).__mro__):
        return False
    return any(kind.claims(model) for kind in (NnxForm, EquinoxForm, PairForm, TreeForm))


def loaded(name: str) -> Any:
    """A library, if the user has imported it."""
    return sys.modules.get(name)


def is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def path_of(keys: tuple[Any, ...]) -> str:
    names = [jax.tree_util.keystr((key,), simple=True) for key in keys]
    # The array inside an nnx.Variable.
    if names and names[-1] == "value" and isinstance(keys[-1], jax.tree_util.GetAttrKey):
        names.pop()
    return ".".join(names)


def accepted(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable of C or with a signature of its own
        return {}


def mode_words(function: Callable[..., Any], training: bool) -> dict[str, Any]:
    return {word: training == means for word, means in TRAINING_WORDS.items() if word in accepted(function)}


def key_word(function: Callable[..., Any]) -> str | None:
    return next((word for word in KEY_WORDS if word in accepted(function)), None)
