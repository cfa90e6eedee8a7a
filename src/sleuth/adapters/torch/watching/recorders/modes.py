"""In which mode dropout and batch-norm are when the model is called. Read only when that may have changed."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.architecture import family_of
from sleuth.adapters.torch.source_lines import flag_line
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.core.observation import Modes

# A loop that changes modes all the time says nothing new any more.
MOST_TOLD = 256


class LayerModes(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._layers = list(_layers(loop.model))
        self._roots: dict[bool, bool] = {}  # builds a graph → the model's flag when the others were last read
        self._told: dict[tuple[bool, bool], tuple[Any, ...]] = {}
        self._count = 0
        self._notes: list[Note] = []

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        graph, root = torch.is_grad_enabled(), self.loop.model.training
        if graph and self._roots.get(graph) == root and not self.loop.looking:
            return
        self._roots[graph] = root
        flags = tuple((layer.training, getattr(layer, "momentum", 0) is None) for _, layer, _ in self._layers)
        if flags != self._told.get((graph, root)) and self._count < MOST_TOLD:
            self._told[graph, root] = flags
            self._count += 1
            self._notes.append(self._modes(graph, root))

    def take(self) -> Sequence[Note]:
        notes, self._notes = self._notes, []
        return notes

    def _modes(self, graph: bool, root: bool) -> Modes:
        acting = [(path, layer, part) for path, layer, part in self._layers if _acts(layer)]
        groups = [group["params"] for optimiser in self.loop.optimisers if optimiser for group in optimiser.param_groups]
        held = {id(p) for params in groups for p in params}
        alone = root and _is_alone(self.loop.model)
        return Modes(
            self.loop.steps,
            graph,
            root,
            active=tuple(path for path, layer, _ in acting if layer.training),
            resting=tuple(path for path, layer, _ in acting if not layer.training),
            frozen=tuple(path for path, _, part in acting if not any(_is_trained(p, held) for p in part.parameters())),
            families={path: family_of(layer) for path, layer, _ in acting},
            alone=alone,
            location=flag_line(sys._getframe()) if alone else None,
            recalibrating=any(layer.training and getattr(layer, "momentum", 0) is None for _, layer, _ in acting),
        )


def _is_alone(model: nn.Module) -> bool:
    """Is nothing below it in training mode?"""
    called: nn.Module = model.__dict__["called"] or model if isinstance(model, Several) else model
    inner = [module for module in called.modules() if module is not called]
    return bool(inner) and not any(module.training for module in inner)


def _is_trained(parameter: torch.Tensor, held: set[int]) -> bool:
    """`held`: by the optimisers; empty while none is known."""
    return parameter.requires_grad and (not held or id(parameter) in held)


def _layers(model: nn.Module) -> list[tuple[str, nn.Module, nn.Module]]:
    """Layers that may act differently in training, each with the part of the model that tells whether it is trained."""
    found = []
    named = dict(model.named_modules())
    for path, layer in named.items():
        if (
            not isinstance(layer, nn.modules.dropout._DropoutNd)
            and not hasattr(layer, "running_mean")
            and not _has_dropout(layer)
        ):
            continue
        own = next(layer.parameters(), None) is not None
        found.append((path, layer, layer if own else named[path.rpartition(".")[0]]))
    return found


def _has_dropout(layer: nn.Module) -> bool:
    return isinstance(layer, nn.RNNBase | nn.MultiheadAttention)


def _acts(layer: nn.Module) -> bool:
    """Does its mode make a difference?"""
    if isinstance(layer, nn.modules.dropout._DropoutNd):
        return layer.p > 0
    if _has_dropout(layer):
        layers = getattr(layer, "num_layers", 2)
        return float(getattr(layer, "dropout", 0.0)) > 0 and layers > 1
    return getattr(layer, "running_mean", None) is not None
