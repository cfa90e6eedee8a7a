"""Listening to a pass: what each module, each activation written as a function and each loss of mlx.nn returned.

Classes and functions of MLX are replaced while it lasts, by ones that call them; nothing is set on the user's objects, and arrays
are only kept, so nothing is computed that was not going to be.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.listening.patches import attempt, carries_call, put_back
from sleuth.adapters.mlx.arrays import arrays_in
from sleuth.adapters.mlx.kinds import activation_of, family_of
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.user_line import users_line
from sleuth.core.location import Location

# As users write them: `nn.relu(x)`, `mx.tanh(x)`. Each has the name that activations bear everywhere.
NN_FUNCTIONS = {
    **{name: name for name in ("relu", "relu6", "relu2", "leaky_relu", "prelu", "elu", "selu", "celu", "silu", "mish", "softplus",
                               "softsign", "sigmoid", "tanh", "hardswish", "softmax", "log_softmax", "gelu")},
    "gelu_approx": "gelu", "gelu_fast_approx": "gelu", "hard_tanh": "hardtanh", "hard_shrink": "hardshrink",
    "softshrink": "softshrink", "log_sigmoid": "logsigmoid",
}  # fmt: skip
MX_FUNCTIONS = {"sigmoid": "sigmoid", "tanh": "tanh", "softmax": "softmax", "maximum": "relu"}
SOFTMAXES = ("softmax", "log_softmax")
LOSSES = (
    "cross_entropy", "binary_cross_entropy", "l1_loss", "mse_loss", "nll_loss", "gaussian_nll_loss", "kl_div_loss",
    "smooth_l1_loss", "triplet_loss", "hinge_loss", "huber_loss", "log_cosh_loss", "cosine_similarity_loss",
    "margin_ranking_loss",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What a module or a function was given and returned. The arrays are kept, and may still be uncomputed."""

    path: str
    family: str
    activation: str
    given: tuple[mx.array, ...]
    array: mx.array
    axis: int | None
    location: Location | None
    kind: str = ""
    dtype: str = ""  # where the array is a copy, which may be wider

    @property
    def operation(self) -> str:
        return self.activation or self.family


@dataclass(frozen=True)
class HeardLoss:
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    returned: Any
    location: Location | None


@dataclass
class Hearing:
    model: nn.Module
    made: list[Made] = field(default_factory=list)
    losses: list[HeardLoss] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)  # of the model as a whole
    given: list[tuple[mx.array, ...]] = field(default_factory=list)  # to it
    change: Callable[[Any], Any] | None = None  # what the model returns goes through it
    places: bool = True
    before: Callable[[Any, tuple[Any, ...], dict[str, Any]], None] | None = None  # a module or a loss is called; may raise
    called: set[str] = field(default_factory=set)
    refused: HeardLoss | None = None  # a loss that raised

    def __post_init__(self) -> None:
        self._known = {id(module): (path, module) for path, module in modules(self.model)}
        self._kinds = {key: (family_of(m), activation_of(m)) for key, (_, m) in self._known.items()}
        self._stack: list[int] = []
        self._inside = 0  # a function that is heard already: what it calls is its own business
        self._times: dict[str, int] = {}
        self.began = False  # the model was called
        self.trouble: Exception | None = None  # of ours: what is noted is not whole

    @contextmanager
    def listening(self) -> Iterator["Hearing"]:
        undo: list[Callable[[], None]] = []
        try:
            for kind in {type(module) for _, module in self._known.values()}:
                undo.append(replaced(kind, "__call__", self._module_call(kind.__call__)))
            for owner, functions in ((nn, NN_FUNCTIONS), (mx, MX_FUNCTIONS)):
                for name, word in functions.items():
                    undo.append(replaced(owner, name, self._function(getattr(owner, name), word, name)))
            for name in LOSSES:
                if hasattr(nn.losses, name):
                    undo.append(replaced(nn.losses, name, self._loss(getattr(nn.losses, name), name)))
            yield self
        finally:
            put_back(*reversed(undo))
        if self.trouble is not None:
            raise self.trouble

    def _failed(self, error: Exception) -> None:
        """An error of ours must not reach the user's call: it is raised when the listening ends."""
        self.trouble = self.trouble or error

    def _module_call(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @carries_call
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            key = id(module)
            if key not in self._known or (self._stack and self._stack[-1] == key):
                return plain(module, *args, **kwargs)
            self.began = True
            self.called.add(self._known[key][0])
            self._stack.append(key)
            try:
                if self.before is not None:
                    self.before(module, args, kwargs)
                output = plain(module, *args, **kwargs)
            finally:
                self._stack.pop()
            if module is self.model and self.change is not None:
                output = self.change(output)
            attempt(self._failed, self._returned, key, (args, tuple(kwargs.values())), output)
            return output

        return call

    def _returned(self, key: int, given: Any, output: Any) -> None:
        path, module = self._known[key]
        family, activation = self._kinds[key]
        if module is self.model:
            self.outputs.append(output)
            self.given.append(tuple(arrays_in(given)))
        if family != "container":
            axis = -1 if family == "softmax" else None
            self._note(path or type(module).__name__, family, activation, given, output, axis, type(module).__name__)

    def _function(self, plain: Callable[..., Any], word: str, name: str) -> Callable[..., Any]:
        @carries_call
        def call(*args: Any, **kwargs: Any) -> Any:
            family = self._kinds[self._stack[-1]][0] if self._stack else ""
            if self._inside or family in ("activation", "softmax", "recurrent", "attention", "loss"):
                return plain(*args, **kwargs)
            self._inside += 1
            try:
                output = plain(*args, **kwargs)
            finally:
                self._inside -= 1
            attempt(self._failed, self._function_returned, word, name, args, kwargs, output)
            return output

        return call

    def _function_returned(self, word: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if name == "maximum" and not _is_rectifier(args):
            return
        inside = self._known[self._stack[-1]][0] if self._stack else ""
        path = ".".join(filter(None, (inside, word)))
        self._times[path] = self._times.get(path, 0) + 1
        path = path if self._times[path] == 1 else f"{path}.{self._times[path]}"
        axis = kwargs.get("axis", args[1] if len(args) > 1 else -1) if word in SOFTMAXES else None
        family = "softmax" if word in SOFTMAXES else "activation"
        self._note(path, family, word, args, output, axis if isinstance(axis, int) else None, word)

    def _loss(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        @carries_call
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return plain(*args, **kwargs)
            self._inside += 1
            try:
                if self.before is not None:
                    self.before(name, args, kwargs)
                returned = plain(*args, **kwargs)
            except Exception:
                attempt(self._failed, self._loss_refused, name, args, kwargs)
                raise
            finally:
                self._inside -= 1
            attempt(self._failed, self._loss_returned, name, args, kwargs, returned)
            return returned

        return call

    def _loss_refused(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.refused = HeardLoss(name, args, kwargs, None, self._here())

    def _loss_returned(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
        self.losses.append(HeardLoss(name, args, kwargs, returned, self._here()))

    def _note(self, path: str, family: str, activation: str, given: Any, output: Any, axis: int | None, kind: str) -> None:
        array = next(iter(arrays_in(output)), None)
        if array is None or array.ndim == 0:
            return
        axis = axis % array.ndim if axis is not None else None
        self.made.append(Made(path, family, activation, tuple(arrays_in(given)), array, axis, self._here(), kind))

    def _here(self) -> Location | None:
        return users_line() if self.places else None


def _is_rectifier(args: tuple[Any, ...]) -> bool:
    """`mx.maximum(x, 0)`."""
    return len(args) == 2 and any(isinstance(a, int | float) and a == 0 for a in args)


def replaced(owner: Any, name: str, new: Any) -> Callable[[], None]:
    """Puts another thing in its place; what it returns puts the first one back, if nobody else came in between."""
    own = name in vars(owner)
    before = vars(owner).get(name)
    setattr(owner, name, new)

    def undo() -> None:
        if vars(owner).get(name) is not new:
            return
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return undo
