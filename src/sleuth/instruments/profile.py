"""Where the time and the memory of a training step go."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from sleuth.core.contract.workload import LayerWork, MemoryUse, Phases
from sleuth.core.errors import UnusableInput
from sleuth.instruments.laboratory import Training, endless, opened, profiling
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed

# The first steps allocate, import and choose kernels.
WARM_UP = 2
STEPS = 10
PHASES = ("data", "forward", "backward", "optimiser")


@dataclass(frozen=True)
class StepProfile(Viewed):
    steps: tuple[Phases, ...]
    layers: tuple[LayerWork, ...]  # each one's own part, without the layers inside it
    memory: MemoryUse
    device: str
    notes: tuple[str, ...] = ()
    fused: float | None = None  # seconds of a whole step in one program, where phases and layers were compiled apart

    @property
    def seconds(self) -> Phases:
        """Of a usual step: the middle one of each phase."""
        return Phases(*(median(getattr(step, phase) for step in self.steps) for phase in PHASES))

    @property
    def shares(self) -> dict[str, float]:
        usual = self.seconds
        return {phase: getattr(usual, phase) / usual.total for phase in PHASES}

    @property
    def slowest(self) -> tuple[LayerWork, ...]:
        return tuple(sorted(self.layers, key=lambda layer: -layer.seconds))

    def share_of(self, layer: LayerWork) -> float:
        """Of what all layers take, forward and backward."""
        return layer.seconds / (sum(other.seconds for other in self.layers) or 1.0)

    def to_dict(self) -> dict[str, Any]:
        return plain({**vars(self), "seconds": self.seconds, "shares": self.shares})


def profile(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    steps: int = STEPS,
    progress: bool | None = None,
) -> StepProfile:
    """Time by phase and by layer, memory by what holds it, over so many training steps of a copy, after a short warm-up.

    Layers are measured by the framework's own profiler, which makes each operation a little slower: read them as shares.
    Without `optimizer` Adam stands in.
    """
    if steps < 1:
        raise UnusableInput(f"steps={steps} must be at least 1.")
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, batches=0, loss=True) as lab:
        if not lab.bench.paths():
            raise UnusableInput("no parameter of the model is trainable, so there is no step to measure.")
        lab.bench.set_training(True)
        found = profiling(lab).cost(lab.bench, endless(lab), steps=steps, warm_up=WARM_UP, tell=lab.progress)
        notes = ["Adam stood in for an optimiser"] if lab.bench.lr is None else []
        return StepProfile(found.steps, found.layers, found.memory, found.device, (*notes, *found.notes, *lab.notes), found.fused)
