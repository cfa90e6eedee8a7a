"""The closed set of facts that everything stands on: plain frozen data, never live tensors.

A new check is routine. A new kind of observation needs a paragraph in docs/design.md, because every adapter
must then produce it. What probes measure are the `Trial`s in `core.trial`.
"""

from sleuth.core.observation.base import Observation, Role, Split
from sleuth.core.observation.calls import WITH_GRAPH, WITHOUT_GRAPH, CallKind
from sleuth.core.observation.crash import DIED, Crash, Entry, Held, Misfit, OutOfMemory, OutOfRange
from sleuth.core.observation.data import Argument, ArrayFacts, Batch, LossCall
from sleuth.core.observation.loop import (
    Accumulation,
    Bystander,
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
    Recurrence,
    Step,
    Synchronisation,
)
from sleuth.core.observation.parts import Architecture, Drawing, Layer, Parameter, Settings, Stray
from sleuth.core.observation.tensors import Frame, Precision, Units
from sleuth.core.observation.trouble import Absent, Dropped, Failure, Holder, Memory, NotFinite, Origin, Retention, Suspect

__all__ = [
    "DIED",
    "WITHOUT_GRAPH",
    "WITH_GRAPH",
    "Absent",
    "Accumulation",
    "Architecture",
    "Argument",
    "ArrayFacts",
    "Batch",
    "Bystander",
    "Call",
    "CallKind",
    "Crash",
    "Drawing",
    "Dropped",
    "Ending",
    "Entry",
    "Evaluation",
    "Failure",
    "Frame",
    "Held",
    "Holder",
    "Jump",
    "Layer",
    "LossCall",
    "Memory",
    "Misfit",
    "Modes",
    "NotFinite",
    "Observation",
    "Optimiser",
    "Origin",
    "OutOfMemory",
    "OutOfRange",
    "Parameter",
    "Part",
    "Pending",
    "Phase",
    "Precision",
    "Predictions",
    "Recurrence",
    "Retention",
    "Role",
    "Settings",
    "Split",
    "Step",
    "Stray",
    "Suspect",
    "Synchronisation",
    "Units",
]
