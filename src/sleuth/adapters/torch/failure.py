"""What an exception in data, forward, loss or backward really says."""

from torch import nn

from sleuth.adapters.torch.failures.backward import BACKWARD
from sleuth.adapters.torch.failures.losses import LOSSES
from sleuth.adapters.torch.failures.scene import Explained, Scene, read_scene
from sleuth.adapters.torch.failures.shapes import SHAPES
from sleuth.adapters.torch.failures.types import TYPES
from sleuth.core.observation import Failure


def explain(error: Exception, phase: str, model: nn.Module) -> Failure:
    scene = read_scene(error.__traceback__, model)
    # A loss may be computed inside the model, and a step may call the model again after its first loss.
    if phase in ("forward", "loss") and scene.target is not None:
        phase = "loss"
    elif phase == "loss" and scene.path is not None:
        phase = "forward"
    explained = _explain(str(error), phase, scene) or Explained("other")
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        kind=explained.kind,
        layer=scene.path or None,
        expected=explained.expected,
        got=explained.got,
        advice=explained.advice,
        location=scene.location,
    )


def _explain(message: str, phase: str, scene: Scene) -> Explained | None:
    tables = (BACKWARD, TYPES, SHAPES) if phase in ("forward", "data") else (BACKWARD, LOSSES, TYPES, SHAPES)
    return next((e for table in tables if (e := table.explain(message, scene)) is not None), None)
