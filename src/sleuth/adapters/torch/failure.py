"""What an exception in data, forward, loss or backward really says."""

from collections.abc import Sequence

from torch import nn

from sleuth.adapters.torch.failures.backward import BACKWARD
from sleuth.adapters.torch.failures.built import built_at
from sleuth.adapters.torch.failures.given import INPUTS, given_at
from sleuth.adapters.torch.failures.loading import LOADING
from sleuth.adapters.torch.failures.losses import LOSSES
from sleuth.adapters.torch.failures.operations import OPERATIONS
from sleuth.adapters.torch.failures.python import PYTHON, explain_python
from sleuth.adapters.torch.failures.scene import Explained, Scene, read_scene
from sleuth.adapters.torch.failures.shapes import SHAPES
from sleuth.adapters.torch.failures.types import TYPES
from sleuth.adapters.torch.pass_listener import Op
from sleuth.core.location import Location
from sleuth.core.observation import Failure

TABLES = {
    "data": (LOADING,),
    "forward": (BACKWARD, PYTHON, TYPES, OPERATIONS, SHAPES),
    "loss": (BACKWARD, PYTHON, LOSSES, TYPES, OPERATIONS, SHAPES),
}


def explain(error: Exception, phase: str, model: nn.Module, ops: Sequence[Op] = ()) -> Failure:
    """`ops`: what ran before, where it was listened to."""
    scene = read_scene(error, model, tuple(ops))
    # A loss may be computed inside the model, and a step may call the model again after its first loss.
    if phase in ("forward", "loss") and scene.target is not None:
        phase = "loss"
    elif phase == "loss" and scene.path is not None:
        phase = "forward"
    explained = _explain(error, phase, scene) or Explained("other")
    place = scene.location or _elsewhere(phase, scene)
    other = explained.location or _resized(explained, scene)
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        kind=explained.kind,
        layer=scene.path or None,
        expected=explained.expected,
        got=explained.got,
        advice=explained.advice,
        location=other or place,
        raised=place if other is not None and other != place else None,
    )


def _explain(error: Exception, phase: str, scene: Scene) -> Explained | None:
    tables = TABLES.get(phase, TABLES["loss"])
    try:
        if phase != "data" and (explained := explain_python(error, scene)) is not None:
            return explained
        return next((e for table in tables if (e := table.explain(str(error), scene)) is not None), None)
    except Exception:  # a reading that fails must not hide what it reads
        return None


def _resized(explained: Explained, scene: Scene) -> Location | None:
    """A layer that takes another size than it gets is changed where it was made."""
    again = explained.kind == "shape" and "make it " in (explained.advice or "")
    return given_at(scene.module, *INPUTS) if again else None


def _elsewhere(phase: str, scene: Scene) -> Location | None:
    """Where the layer was built; for a loss, the line that made the output, or the layer that did."""
    if phase != "loss":
        return built_at(scene.module)
    maker = next((op for op in reversed(scene.ops) if id(scene.input) in op.outputs), None)
    if maker is None or maker.location is not None:
        return maker.location if maker is not None else None
    return built_at(scene.model.get_submodule(maker.layer)) if scene.model is not None else None
