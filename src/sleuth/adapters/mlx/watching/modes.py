"""In which modes the layers are that behave otherwise in training, noted whenever that changes."""

import mlx.nn as nn

from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.observation import Modes

MODAL = ("dropout", "batchnorm")


class SeenModes(NotingRecorder):
    def __init__(self) -> None:
        super().__init__()
        self._before: dict[bool, Modes] = {}  # with and without gradients

    def called(self, model: nn.Module, step: int, graph: bool) -> None:
        modes, before = modes_of(model, step, graph=graph), self._before.get(graph)
        if before is None or (modes.root, modes.active, modes.resting) != (before.root, before.active, before.resting):
            self._before[graph] = modes
            self.notes.append(modes)


def modes_of(model: nn.Module, step: int, *, graph: bool) -> Modes:
    found = [(path, module, family_of(module)) for path, module in modules(model) if family_of(module) in MODAL and _acts(module)]
    trained = {e.layer for e in parameters(model) if e.trainable}
    frozen = [path for path, module, family in found if family == "batchnorm" and path not in trained]
    return Modes(
        step,
        graph=graph,
        root=bool(model.training),
        active=tuple(path for path, module, _ in found if module.training),
        resting=tuple(path for path, module, _ in found if not module.training),
        frozen=tuple(frozen),
        families={path: family for path, _, family in found},
    )


def _acts(module: nn.Module) -> bool:
    """Those that attention and transformers bring along drop nothing unless they are told to."""
    return float(getattr(module, "_p_1", 0.0)) < 1.0
