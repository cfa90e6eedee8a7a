"""The protocol between sleuth and a framework.

Capabilities are separate abstract classes: what an adapter does not inherit turns into *not examined*, and a
misspelt method fails at construction. docs/design.md shows how each framework fills them in.
"""

from collections.abc import Callable

from sleuth.core.contract.adapter.bench import (
    Bench,
    CheckpointState,
    Compared,
    Compares,
    Gradients,
    LayerValues,
    Profiles,
    Steps,
    Substitutes,
)
from sleuth.core.contract.adapter.looking import Attends, Credits, Inspects, Routes, Shows
from sleuth.core.contract.adapter.required import Adapter, Describes
from sleuth.core.contract.adapter.sources import Crew, Employs, Orders, Rows
from sleuth.core.contract.adapter.tracing import Bypass, Dissects, Traces
from sleuth.core.contract.adapter.watching import (
    Attended,
    Discovered,
    Discovering,
    Discovers,
    Explains,
    Replays,
    Watches,
    Watching,
    WrapsSteps,
)
from sleuth.core.observation import Observation

__all__ = [
    "Adapter",
    "Attended",
    "Attends",
    "Bench",
    "Bypass",
    "CheckpointState",
    "Compared",
    "Compares",
    "Credits",
    "Crew",
    "Describes",
    "Discovered",
    "Discovering",
    "Discovers",
    "Dissects",
    "Emit",
    "Employs",
    "Explains",
    "Gradients",
    "Inspects",
    "LayerValues",
    "Orders",
    "Profiles",
    "Replays",
    "Routes",
    "Rows",
    "Shows",
    "Steps",
    "Substitutes",
    "Traces",
    "Watches",
    "Watching",
    "WrapsSteps",
]

Emit = Callable[[Observation], None]
