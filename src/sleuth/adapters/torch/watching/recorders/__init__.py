"""What a watch records beside the steps themselves: one recorder a file, named here; scenes are kept of every step."""

from sleuth.adapters.torch.watching.loop import LoopRecorder
from sleuth.adapters.torch.watching.recorders.accumulations import Accumulations
from sleuth.adapters.torch.watching.recorders.firing_units import Firing
from sleuth.adapters.torch.watching.recorders.first_batches import Batches
from sleuth.adapters.torch.watching.recorders.losses import Losses
from sleuth.adapters.torch.watching.recorders.memory import MemoryReadings
from sleuth.adapters.torch.watching.recorders.modes import LayerModes
from sleuth.adapters.torch.watching.recorders.orphan_model import OrphanModels
from sleuth.adapters.torch.watching.recorders.predictions import Predicted
from sleuth.adapters.torch.watching.recorders.repeated_inputs import Recurrences
from sleuth.adapters.torch.watching.recorders.retained_graphs import Graphs
from sleuth.adapters.torch.watching.recorders.synchronisations import Synchronisations
from sleuth.adapters.torch.watching.recorders.validation import Validation

RECORDERS: tuple[type[LoopRecorder], ...] = (
    Losses,
    Predicted,
    Validation,
    Accumulations,
    Batches,
    Graphs,
    MemoryReadings,
    LayerModes,
    Firing,
    Recurrences,
    Synchronisations,
    OrphanModels,
)
