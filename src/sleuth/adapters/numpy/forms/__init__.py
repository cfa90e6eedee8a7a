"""The forms that people write networks in, brought to the one that the adapter works with: forward, parameters, backward."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sleuth.adapters.common.manual_loop.calling import positional
from sleuth.adapters.numpy.forms.functions import ByHand, is_weights
from sleuth.adapters.numpy.forms.layers import Layers, is_layered
from sleuth.core.subject import Subject


def is_known(thing: Any) -> bool:
    if isinstance(thing, type):
        return False
    if is_weights(thing) or is_layered(thing) or _scores(thing) is not None:
        return True
    return callable(getattr(thing, "forward", None)) and hasattr(thing, "parameters")


def understood(subject: Subject) -> Subject:
    """The same training with a model that has forward(x), parameters() and, where it can, backward."""
    model, step = subject.model, subject.step
    if is_weights(model):
        return replace(subject, model=ByHand(model, step=step), step=None)
    if isinstance(model, ByHand) or hasattr(model, "parameters"):
        return subject
    if (scores := _scores(model)) is not None:
        return replace(subject, model=ByHand(model.params, forward=scores, step=model.loss), loss=None)
    if is_layered(model):
        return replace(subject, model=Layers(model), loss=subject.loss or own_loss_of(model))
    return subject


def own_loss_of(network: Any) -> Any:
    """A network's loss that is asked for output and target."""
    found = getattr(network, "loss", None)
    return found if callable(found) and len(positional(found) or ()) == 2 else None


def _scores(model: Any) -> Callable[..., Any] | None:
    """Of a model with `params` and `loss(X, y=None)`, which gives scores without a target, and loss and gradients with one."""
    loss = getattr(model, "loss", None)
    if not inspect.ismethod(loss) or not is_weights(getattr(model, "params", None)):
        return None
    wanted = positional(loss) or []
    return loss if len(wanted) >= 2 and all(p.default is not p.empty for p in wanted[1:]) else None
