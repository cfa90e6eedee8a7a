"""What a watch listens for beside the steps themselves: one ear a file, named here; scenes are kept of every step."""

from sleuth.adapters.torch.watching.ear import Ear
from sleuth.adapters.torch.watching.ears.accumulations import Accumulations
from sleuth.adapters.torch.watching.ears.batches import Batches
from sleuth.adapters.torch.watching.ears.bystanders import Bystanders
from sleuth.adapters.torch.watching.ears.firing import Firing
from sleuth.adapters.torch.watching.ears.graph import Graphs
from sleuth.adapters.torch.watching.ears.losses import Losses
from sleuth.adapters.torch.watching.ears.memory import ProcessMemory
from sleuth.adapters.torch.watching.ears.modes import LayerModes
from sleuth.adapters.torch.watching.ears.predictions import Predicted
from sleuth.adapters.torch.watching.ears.recurrence import Recurrences
from sleuth.adapters.torch.watching.ears.synchronisations import Synchronisations
from sleuth.adapters.torch.watching.ears.validation import Validation

EARS: tuple[type[Ear], ...] = (
    Losses,
    Predicted,
    Validation,
    Accumulations,
    Batches,
    Graphs,
    ProcessMemory,
    LayerModes,
    Firing,
    Recurrences,
    Synchronisations,
    Bystanders,
)
