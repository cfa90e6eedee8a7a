"""Patches of torch's classes and functions: each translates a call into events for whoever listens.

All watches of the process share them: the first one to join puts them in place, the last one to leave takes them out.
"""

import functools
from time import perf_counter
from typing import Any

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.hooks import RemovableHandle

from sleuth.adapters.listening.patches import Function, Make, Patch, speak_up, tell
from sleuth.adapters.torch.compat import PRIVATE
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.core.observation.calls import CallKind

# The losses of torch.nn.functional; the loss modules call these too.
LOSSES = [name for name in vars(functional) if name.endswith("_loss") and not name.startswith("_")]
LOSSES += ["cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"]


LISTENERS: list[TorchEvents] = []
_patches: list[Patch | RemovableHandle] = []


def join(listener: TorchEvents) -> None:
    if not LISTENERS:
        _patches.extend(_patch_torch())
        # For all optimisers: one that was made only while the watch is open is heard as well.
        _patches.extend((register_optimizer_step_pre_hook(_before_step), register_optimizer_step_post_hook(_after_step)))
    LISTENERS.append(listener)


def exchange(listener: TorchEvents, other: TorchEvents) -> None:
    """The other one hears in its place."""
    if listener in LISTENERS:
        LISTENERS[LISTENERS.index(listener)] = other


def leave(listener: TorchEvents) -> None:
    if listener in LISTENERS:
        LISTENERS.remove(listener)
    if not LISTENERS:
        while _patches:
            _patches.pop().remove()
    Patch.remove_covered()


def forget() -> None:
    """In a child process: nobody listens here, and the patches let everything through."""
    LISTENERS.clear()


def _patch_torch() -> list[Patch]:
    found = [
        Patch(torch.Tensor, "backward", _backward),
        Patch(Optimizer, "__init__", _made),
        Patch(Optimizer, "zero_grad", _before(CallKind.ZERO_GRAD)),
        Patch(nn.Module, "zero_grad", _before(CallKind.ZERO_GRAD)),
        Patch(GradScaler, "scale", _scale),
        Patch(GradScaler, "step", _scaler_step),
        Patch(GradScaler, "unscale_", _unscale),
    ]
    found += [Patch(cls, "step", _scheduler) for cls in _schedulers()]
    # What clip_grad_norm_ calls is heard, and so is whoever had imported that one before.
    inner = "_clip_grads_with_norm_" if hasattr(nn.utils.clip_grad, "_clip_grads_with_norm_") else "clip_grad_norm_"
    for module, name in ((nn.utils.clip_grad, inner), (nn.utils.clip_grad, "clip_grad_value_"), (nn.utils, "clip_grad_value_")):
        found.append(Patch(module, name, _clip))
    if not compiled_already():
        found += [Patch(functional, name, functools.partial(_loss, name)) for name in LOSSES]
        found.append(Patch(torch.autograd, "grad", _before(CallKind.GRADIENT)))
    found += [Patch(_BaseDataLoaderIter, "__next__", _batch), Patch(_BaseDataLoaderIter, "_next_index", _index)]
    return found


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


def _backward(original: Function) -> Function:
    def backward(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        tell(LISTENERS, "hear_backward", self, kwargs)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            tell(LISTENERS, "hear_backward_failed", self, error)
            raise
        tell(LISTENERS, "hear_backward_end", self)
        speak_up(LISTENERS)
        return result

    return backward


def _before(kind: CallKind) -> Make:
    def make(original: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling():
                tell(LISTENERS, "hear_call", kind, args[0] if args else None)  # all may be given by name
            return original(*args, **kwargs)

        return call

    return make


def _made(original: Function) -> Function:
    def make(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        tell(LISTENERS, "hear_made", self)

    return make


def _before_step(optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not torch.compiler.is_compiling():
        # The optimiser itself is the first of the arguments.
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        tell(LISTENERS, "hear_step", optimiser, closure)
        speak_up(LISTENERS)


def _after_step(optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not torch.compiler.is_compiling():
        tell(LISTENERS, "hear_step_end", optimiser)


# A scheduler may be made of others, and call their steps in its own.
_scheduling: list[Any] = []


def _scheduler(original: Function) -> Function:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _scheduling:
            tell(LISTENERS, "hear_scheduler", self, bool(args or kwargs))
        _scheduling.append(None)
        try:
            return original(self, *args, **kwargs)
        finally:
            _scheduling.pop()

    return step


def _clip(original: Function) -> Function:
    def clip(*args: Any, **kwargs: Any) -> Any:
        listeners = () if torch.compiler.is_compiling() else LISTENERS
        tell(listeners, "hear_clip", args, kwargs)
        result = original(*args, **kwargs)
        tell(listeners, "hear_clip_end")
        return result

    return clip


def _unscale(original: Function) -> Function:
    def unscale(self: GradScaler, *args: Any, **kwargs: Any) -> Any:
        if self.is_enabled():
            tell(LISTENERS, "hear_call", CallKind.UNSCALE, self)
        return original(self, *args, **kwargs)

    return unscale


def _scale(original: Function) -> Function:
    def scale(self: GradScaler, outputs: Any) -> Any:
        if isinstance(outputs, torch.Tensor):
            tell(LISTENERS, "hear_scale", outputs, self.is_enabled())
        return original(self, outputs)

    return scale


def _scaler_step(original: Function) -> Function:
    def step(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        result = original(self, optimizer, *args, **kwargs)
        tell(LISTENERS, "hear_scaler_step", optimizer)
        return result

    return step


def _loss(name: str, original: Function) -> Function:
    def loss(*args: Any, **kwargs: Any) -> Any:
        returned = original(*args, **kwargs)
        if not torch.compiler.is_compiling():
            tell(LISTENERS, "hear_loss", name, args, kwargs, returned)
        return returned

    return loss


# How long the latest batch of a loader took to come: begin and end.
_waited = [0.0, 0.0]


def waited_seconds() -> float:
    return _waited[1] - _waited[0]


def _batch(original: Function) -> Function:
    def give(self: Any) -> Any:
        began = perf_counter()
        batch = original(self)
        _waited[:] = began, perf_counter()
        tell(LISTENERS, "hear_batch", self, batch)
        return batch

    return give


def _index(original: Function) -> Function:
    def draw(self: Any) -> Any:
        positions = original(self)
        tell(LISTENERS, "hear_index", self, positions)
        return positions

    return draw
