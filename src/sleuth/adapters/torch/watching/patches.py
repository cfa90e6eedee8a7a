"""Calls into torch that tell whoever watches. A tap is a replaced attribute of a class or module of torch.

All watches of the process share the taps: the first one to join puts them in place, the last one to leave takes them out.
"""

import functools
import math
from collections.abc import Callable, Mapping
from time import perf_counter
from types import GeneratorType
from typing import Any, ClassVar

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.hooks import RemovableHandle

from sleuth.adapters.torch.compat import PRIVATE

Hear = Callable[..., Any]

# The losses of torch.nn.functional; the loss modules call these too.
LOSSES = [name for name in vars(functional) if name.endswith("_loss") and not name.startswith("_")]
LOSSES += ["cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"]


class Listener:
    """Final methods do nothing; a watcher overrides what it wants to hear. None of them may raise."""

    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Of the model itself; see Root."""

    def hear_output(self, output: Any) -> None: ...

    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None: ...

    def hear_backward_end(self, loss: torch.Tensor) -> None: ...

    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None: ...

    def hear_call(self, kind: str, thing: Any) -> None: ...

    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        """`told`: it was given a metric or an epoch."""

    def hear_clip(self) -> None: ...

    def hear_clip_end(self, owner: Any) -> None:
        """`owner`: a module or a tensor whose gradient was to be clipped, None where that cannot be told."""

    def hear_made(self, optimiser: Optimizer) -> None: ...

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None: ...

    def hear_step_end(self, optimiser: Optimizer) -> None: ...

    def hear_scale(self, loss: torch.Tensor, enabled: bool) -> None: ...

    def hear_scaler_step(self, optimiser: Optimizer) -> None: ...

    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None: ...

    def hear_index(self, iterator: Any, positions: Any) -> None: ...

    def hear_batch(self, iterator: Any, batch: Any) -> None: ...


class Tap:
    """Replaces one attribute; puts back what was there, or nothing where the class only inherited it."""

    _buried: ClassVar[list["Tap"]] = []  # below a wrapper of somebody else's, who came later and was still there

    def __init__(self, holder: Any, name: str, make: Callable[[Hear], Hear]) -> None:
        self._holder, self._name = holder, name
        self._own: Any
        self._ours: Hear
        self.sweep()
        if (below := next((t for t in self._buried if t._is_for(holder, name)), None)) is not None:
            # It tells whoever listens now: another one above it would tell everything twice.
            self._buried.remove(below)
            self._own, self._ours = below._own, below._ours
            return
        self._own = vars(holder).get(name)
        original = getattr(holder, name)
        self._ours = functools.wraps(original)(make(original))
        setattr(holder, name, self._ours)

    def remove(self) -> None:
        # Somebody else may have wrapped it after us: then their wrapper stays, and ours inside it is silent until they have gone.
        if vars(self._holder).get(self._name) is not self._ours:
            self._buried.append(self)
        elif self._own is None:
            delattr(self._holder, self._name)
        else:
            setattr(self._holder, self._name, self._own)

    @classmethod
    def sweep(cls) -> None:
        """Takes out what was buried and is no more."""
        waiting, cls._buried = cls._buried, []
        for tap in waiting:
            tap.remove()

    def _is_for(self, holder: Any, name: str) -> bool:
        return self._holder is holder and self._name == name


LISTENERS: list[Listener] = []
_taps: list[Tap | RemovableHandle] = []


def join(listener: Listener) -> None:
    if not LISTENERS:
        _taps.extend(_open_taps())
        # For all optimisers: one that was made only while the watch is open is heard as well.
        _taps.extend((register_optimizer_step_pre_hook(_before_step), register_optimizer_step_post_hook(_after_step)))
    LISTENERS.append(listener)


def exchange(listener: Listener, other: Listener) -> None:
    """The other one hears in its place."""
    if listener in LISTENERS:
        LISTENERS[LISTENERS.index(listener)] = other


def leave(listener: Listener) -> None:
    if listener in LISTENERS:
        LISTENERS.remove(listener)
    if not LISTENERS:
        while _taps:
            _taps.pop().remove()
    Tap.sweep()


class Root:
    """The call of one model, through its class: told apart from others of the class by identity."""

    _taps: ClassVar[dict[type, Tap]] = {}
    open: ClassVar[list["Root"]] = []

    def __init__(self, model: nn.Module, listener: Listener) -> None:
        self.model, self.listener = model, listener
        if type(model) not in self._taps:
            # On nn.Module itself there is nothing above that could be looked up.
            make = _root_call if type(model) is not nn.Module else _bare_root_call
            self._taps[type(model)] = Tap(type(model), "__call__", make)
        self.open.append(self)

    def leave(self) -> None:
        self.open.remove(self)
        cls = type(self.model)
        if not any(type(root.model) is cls for root in self.open):
            self._taps.pop(cls).remove()
        self.model = nn.Module()


def _bare_root_call(original: Hear) -> Hear:
    return _root_call(original, inherited=False)


def _root_call(original: Hear, inherited: bool | None = None) -> Hear:
    inherited = original is nn.Module.__call__ if inherited is None else inherited

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            # What is read here is guarded: it must be the same on every step, or torch compiles anew.
            return module._wrapped_call_impl(*args, **kwargs) if inherited else original(module, *args, **kwargs)
        for root in Root.open:
            if root.model is module:
                root.listener.hear_forward(args, kwargs)
        # Looked up anew: on some steps nn.Module's own is replaced.
        output = nn.Module.__call__(module, *args, **kwargs) if inherited else original(module, *args, **kwargs)
        for root in Root.open:
            if root.model is module:
                root.listener.hear_output(output)
        return output

    return call


def forget() -> None:
    """In a child process: nobody listens here, and the taps let everything through."""
    LISTENERS.clear()
    Root.open.clear()


def _open_taps() -> list[Tap]:
    taps = [
        Tap(torch.Tensor, "backward", _backward),
        Tap(Optimizer, "__init__", _made),
        Tap(Optimizer, "zero_grad", _before("zero_grad")),
        Tap(nn.Module, "zero_grad", _before("zero_grad")),
        Tap(GradScaler, "scale", _scale),
        Tap(GradScaler, "step", _scaler_step),
        Tap(GradScaler, "unscale_", _unscale),
    ]
    taps += [Tap(cls, "step", _scheduler) for cls in _schedulers()]
    # What clip_grad_norm_ calls is heard, and so is whoever had imported that one before.
    inner = "_clip_grads_with_norm_" if hasattr(nn.utils.clip_grad, "_clip_grads_with_norm_") else "clip_grad_norm_"
    for module, name in ((nn.utils.clip_grad, inner), (nn.utils.clip_grad, "clip_grad_value_"), (nn.utils, "clip_grad_value_")):
        taps.append(Tap(module, name, _clip))
    if not compiled_already():
        taps += [Tap(functional, name, functools.partial(_loss, name)) for name in LOSSES]
        taps.append(Tap(torch.autograd, "grad", _before("gradient")))
    taps += [Tap(_BaseDataLoaderIter, "__next__", _batch), Tap(_BaseDataLoaderIter, "_next_index", _index)]
    return taps


def compiled_already() -> bool:
    """What torch.compile made so far is guarded by the very functions that it met: another one there, and it compiles anew."""
    counters = PRIVATE.if_imported("torch._dynamo.utils.counters")
    return counters is not None and counters["stats"]["unique_graphs"] > 0


def losses_are_heard() -> bool:
    return hasattr(functional.cross_entropy, "__wrapped__")


def _schedulers() -> list[type]:
    """Every scheduler with a step of its own."""
    found = [cls for cls in vars(lr_scheduler).values() if isinstance(cls, type) and issubclass(cls, lr_scheduler.LRScheduler)]
    return [cls for cls in dict.fromkeys(found) if "step" in vars(cls)]


def _backward(original: Hear) -> Hear:
    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        for listener in LISTENERS:
            listener.hear_backward(self, kwargs)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            for listener in LISTENERS:
                listener.hear_backward_failed(self, error)
            raise
        for listener in LISTENERS:
            listener.hear_backward_end(self)
        return result

    return backward


def _before(kind: str) -> Callable[[Hear], Hear]:
    def make(original: Hear) -> Hear:
        def call(thing: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling():
                for listener in LISTENERS:
                    listener.hear_call(kind, thing)
            return original(thing, *args, **kwargs)

        return call

    return make


def _made(original: Hear) -> Hear:
    def make(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for listener in LISTENERS:
            listener.hear_made(self)

    return make


def _before_step(optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not torch.compiler.is_compiling():
        # The optimiser itself is the first of the arguments.
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        for listener in LISTENERS:
            listener.hear_step(optimiser, closure)


def _after_step(optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not torch.compiler.is_compiling():
        for listener in LISTENERS:
            listener.hear_step_end(optimiser)


# A scheduler may be made of others, and call their steps in its own.
_scheduling: list[Any] = []


def _scheduler(original: Hear) -> Hear:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _scheduling:
            for listener in LISTENERS:
                listener.hear_scheduler(self, bool(args or kwargs))
        _scheduling.append(None)
        try:
            return original(self, *args, **kwargs)
        finally:
            _scheduling.pop()

    return step


def _clip(original: Hear) -> Hear:
    def clip(*args: Any, **kwargs: Any) -> Any:
        limit = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
        # Without a limit it is a way to ask for the norm.
        limited = limit is not None and limit != math.inf
        heard = LISTENERS if limited and not torch.compiler.is_compiling() else ()
        owner = _owner(args[0] if args else kwargs.get("parameters")) if heard else None
        for listener in heard:
            listener.hear_clip()
        result = original(*args, **kwargs)
        for listener in heard:
            listener.hear_clip_end(owner)
        return result

    return clip


def _owner(parameters: Any) -> Any:
    """Whose parameters these are. A generator can be asked only once, and that is for the user."""
    if isinstance(parameters, torch.Tensor):
        return parameters
    if isinstance(parameters, list | tuple):
        return parameters[0] if parameters and isinstance(parameters[0], torch.Tensor) else None
    if isinstance(parameters, GeneratorType) and parameters.gi_frame is not None:
        names = parameters.gi_frame.f_locals
        return _owner(names[".0"]) if ".0" in names else names.get("self")
    return None


def _unscale(original: Hear) -> Hear:
    def unscale(self: GradScaler, *args: Any, **kwargs: Any) -> Any:
        if self.is_enabled():
            for listener in LISTENERS:
                listener.hear_call("unscale", self)
        return original(self, *args, **kwargs)

    return unscale


def _scale(original: Hear) -> Hear:
    def scale(self: GradScaler, outputs: Any) -> Any:
        if isinstance(outputs, torch.Tensor):
            for listener in LISTENERS:
                listener.hear_scale(outputs, self.is_enabled())
        return original(self, outputs)

    return scale


def _scaler_step(original: Hear) -> Hear:
    def step(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        result = original(self, optimizer, *args, **kwargs)
        for listener in LISTENERS:
            listener.hear_scaler_step(optimizer)
        return result

    return step


def _loss(name: str, original: Hear) -> Hear:
    def loss(*args: Any, **kwargs: Any) -> Any:
        returned = original(*args, **kwargs)
        if not torch.compiler.is_compiling():
            for listener in LISTENERS:
                listener.hear_loss(name, args, kwargs, returned)
        return returned

    return loss


# How long the latest batch of a loader took to come: begin and end.
_waited = [0.0, 0.0]


def waited_seconds() -> float:
    return _waited[1] - _waited[0]


def _batch(original: Hear) -> Hear:
    def give(self: Any) -> Any:
        began = perf_counter()
        batch = original(self)
        _waited[:] = began, perf_counter()
        for listener in LISTENERS:
            listener.hear_batch(self, batch)
        return batch

    return give


def _index(original: Hear) -> Hear:
    def draw(self: Any) -> Any:
        positions = original(self)
        for listener in LISTENERS:
            listener.hear_index(self, positions)
        return positions

    return draw
