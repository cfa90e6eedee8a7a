"""The closed set of facts that everything stands on: plain frozen data, never live tensors.

A new check is routine. A new kind of observation needs a paragraph in docs/design.md, because every adapter
must then produce it. What probes measure are the `Trial`s in `core.trial`.
"""

from sleuth.core.observation.base import Observation, Role, Split
from sleuth.core.observation.data import Argument, ArrayFacts, Batch, LossCall
from sleuth.core.observation.loop import (
    Accumulation,
    Call,
    Ending,
    Evaluation,
    Jump,
    Modes,
    Optimiser,
    Part,
    Pending,
    Phase,
    Predictions,
    Step,
)
from sleuth.core.observation.parts import Architecture, Layer, Parameter, Settings, Stray
from sleuth.core.observation.tensors import Frame, Precision, Units
from sleuth.core.observation.trouble import Absent, Dropped, Failure, Holder, Memory, NotFinite, Origin, Retention, Suspect

__all__ = [
    "Absent",
    "Accumulation",
    "Architecture",
    "Argument",
    "ArrayFacts",
    "Batch",
    "Call",
    "Dropped",
    "Ending",
    "Evaluation",
    "Failure",
    "Frame",
    "Holder",
    "Jump",
    "Layer",
    "LossCall",
    "Memory",
    "Modes",
    "NotFinite",
    "Observation",
    "Optimiser",
    "Origin",
    "Parameter",
    "Part",
    "Pending",
    "Phase",
    "Precision",
    "Predictions",
    "Retention",
    "Role",
    "Settings",
    "Split",
    "Step",
    "Stray",
    "Suspect",
    "Units",
]
