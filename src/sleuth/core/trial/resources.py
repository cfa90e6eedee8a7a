"""What a forward pass costs. One frozen class a probe."""

from dataclasses import dataclass

from sleuth.core.trial.kind import Trial


@dataclass(frozen=True)
class Workload(Trial):
    """One forward pass and loss, layer by layer, with all samples of a batch and with some of them."""

    layers: tuple["LayerLoad", ...]
    samples: int
    fewer_samples: int


@dataclass(frozen=True)
class LayerLoad:
    """One layer's own part: what the layers inside it do is theirs."""

    path: str  # "" for what the model does outside of its layers, and for the loss
    kind: str
    family: str
    seconds: float  # only where some layer calls more for more samples: else it may be 0, not measured
    flops: int
    operations: int
    fewer_operations: int  # with fewer samples
