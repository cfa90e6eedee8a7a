"""Puts together what a watch kept: model, loss and optimiser as they were at the first step, and the batches that passed by."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from sleuth.adapters.torch.watching.ears.reservoir import Reservoir
from sleuth.adapters.torch.watching.several import Several
from sleuth.core.kept import Kept
from sleuth.core.subject import Subject


def kept(model: nn.Module, reservoir: Reservoir, remarks: Sequence[str] = ()) -> Kept | None:
    if not reservoir.train.batches:
        return None
    loss, reason = reservoir.loss_again, reservoir.never_again
    fresh = None if isinstance(model, Several) or reservoir.start is None else _as_at_first(model, reservoir.start)
    if fresh is None:
        loss, reason = None, reason or "the model could not be brought back to its first step"
    recipes = reservoir.recipes
    optimiser = recipes[0].made_for(fresh) if fresh is not None and len(recipes) == 1 else None
    if fresh is not None and optimiser is None:
        loss, reason = None, reason or "the optimiser could not be made again"
    return Kept(
        Subject(model if fresh is None else fresh, None, loss, optimiser),
        reservoir.train.batches,
        reservoir.groups(),
        reservoir.first_positions,
        available=reservoir.available,
        callable=reservoir.called_once,
        at_start=loss is not None,
        remarks=(*remarks, *([reason] if reason else [])),
    )


def _as_at_first(model: nn.Module, start: Mapping[str, torch.Tensor]) -> nn.Module | None:
    try:
        fresh = copy.deepcopy(model)
        now = {**dict(fresh.named_parameters()), **dict(fresh.named_buffers())}
        if now.keys() != start.keys() or any(now[name].shape != t.shape for name, t in start.items()):
            return None
        with torch.no_grad():
            for name, tensor in start.items():
                now[name].copy_(tensor)
    except Exception:  # a model may hold what cannot be copied
        return None
    fresh.zero_grad(set_to_none=True)
    return fresh.train()
