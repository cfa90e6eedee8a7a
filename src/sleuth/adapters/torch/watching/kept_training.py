"""Puts together what a watch kept: model, loss and optimiser as they were at the first step, and the batches that passed by."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.returned_loss import ReturnedLoss
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.initial_weights import is_small
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.loss_tape import TapeLoss
from sleuth.adapters.torch.watching.recorders.kept_batches import KeptBatches
from sleuth.adapters.torch.watching.uncompiled import copied, is_compiled, plain_name
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.subject import Parts, Subject, call_model


def kept(model: nn.Module, reservoir: KeptBatches, remarks: Sequence[str] = ()) -> Kept | None:
    train = reservoir.train.taken()
    if not train:
        return None
    loss, step, reason = reservoir.loss_again, reservoir.returned, reservoir.never_again
    forbidden = _forbidden(model, reservoir)
    apart = isinstance(model, Several) or reservoir.start is None or forbidden
    fresh = None if apart or reservoir.start is None else _as_at_first(model, reservoir.start)
    if fresh is None:
        loss, step, reason = None, None, reason or "the model could not be brought back to its first step"
    recipes = reservoir.recipes
    optimiser = recipes[0].made_for(fresh) if fresh is not None and len(recipes) == 1 else None
    if fresh is not None and optimiser is None:
        loss, step, reason = None, None, reason or "the optimiser could not be made again"
    if fresh is not None and (loss is not None or step is not None):
        loss = TapeLoss(loss.tape, loss.target, fresh) if isinstance(loss, TapeLoss) else loss
        reason = _not_the_same(fresh, reservoir, _computing(loss, step), train[0])
        loss, step = (None, None) if reason else (loss, step)
    if fresh is not None and step is not None:
        step = _with_answers(step, fresh, reservoir, train[0])
    answers = None if step is None else step.answered
    return Kept(
        Subject(model if fresh is None else fresh, None, loss, optimiser, step=step, answers=answers),
        train,
        reservoir.groups(),
        reservoir.first_positions,
        available=reservoir.available,
        fed_anew=reservoir.fed_anew,
        callable=reservoir.called_once,
        at_start=loss is not None or step is not None,
        first_weights=fresh is not None,
        forbidden=forbidden,
        remarks=(*remarks, *([reason] if reason else [])),
    )


def _computing(loss: Any, step: ReturnedLoss | None) -> Callable[[nn.Module, Parts], Any]:
    if step is not None:
        return lambda model, parts: step(model, parts.raw)
    return lambda model, parts: loss(call_model(model, model.forward, parts.inputs), parts.target)


def _with_answers(step: ReturnedLoss, fresh: nn.Module, reservoir: KeptBatches, passed: Passed) -> ReturnedLoss:
    """The model is left as it was, and so are the dice."""
    try:
        with torch.random.fork_rng(devices=[]):
            return step.with_answers(fresh.eval(), passed.parts.raw)
    except Exception:  # what is not known is asked for in vain
        return step
    finally:
        fresh.train()
        if reservoir.start is not None:
            _write(fresh, reservoir.start)


def _not_the_same(fresh: nn.Module, reservoir: KeptBatches, compute: Callable[[nn.Module, Parts], Any], passed: Passed) -> str:
    """Why experiments with this loss would tell of another training than the script's; the model is left as it was."""
    first, start = reservoir.first, reservoir.start
    if first is None or start is None or not reservoir.first_is_whole:
        return "the first batch is too large to be kept, so it cannot be told whether the loss was put together rightly"
    first.set_modes(fresh)
    reason = first.obstacle(fresh, compute, passed.parts)
    _write(fresh, start)
    if not fresh.training:
        fresh.train()
    return reason


def _forbidden(model: nn.Module, reservoir: KeptBatches) -> str:
    if not reservoir.alone:
        return "the model is trained by several processes, which would have to do each experiment together"
    if patches.compiled_already() and not is_compiled(model):
        return "something of the model is compiled, and would have to be compiled again for each experiment"
    return "" if is_small(model) else "the model is too large to be called once more at the end"


def _as_at_first(model: nn.Module, start: Mapping[str, torch.Tensor]) -> nn.Module | None:
    try:
        fresh, start = copied(model), {plain_name(name): t for name, t in start.items()}
        now = {**dict(fresh.named_parameters()), **dict(fresh.named_buffers())}
        if now.keys() != start.keys() or any(now[name].shape != t.shape for name, t in start.items()):
            return None
        _write(fresh, start)
    except Exception:  # a model may hold what cannot be copied
        return None
    fresh.zero_grad(set_to_none=True)
    return fresh.train()


def _write(model: nn.Module, values: Mapping[str, torch.Tensor]) -> None:
    now = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        for name, tensor in values.items():
            now[plain_name(name)].copy_(tensor)
