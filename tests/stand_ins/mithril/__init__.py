"""A stand-in for Mithril, for tests only: the parts that sleuth touches, under the real names and signatures.

The real library wants Python 3.12. What it says and does was read from its source and tried there; see docs/mithril.md.
"""

from .backend import NumpyBackend, float32, float64
from .logical import Tensor
from .models import Model, TrainModel
from .physical import PhysicalModel

__all__ = ["Model", "NumpyBackend", "PhysicalModel", "Tensor", "TrainModel", "compile", "float32", "float64"]


def compile(
    model,
    backend,
    *,
    constant_keys=None,
    data_keys=None,
    discard_keys=None,
    trainable_keys=None,
    shapes=None,
    inference=False,
    jit=True,
    file_path=None,
    safe_shapes=True,
    safe_names=True,
    use_short_namings=True,
):
    if isinstance(model, TrainModel):
        model.finalize()
    if model.parent is not None:
        raise ValueError("Model with a parent could not be compiled!")
    return PhysicalModel(
        model,
        backend,
        constant_keys=dict(constant_keys or {}),
        data_keys=set(data_keys or ()),
        trainable_keys=set(trainable_keys or ()),
        shapes=dict(shapes or {}),
        inference=inference,
    )
