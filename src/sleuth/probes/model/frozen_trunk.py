"""The frozen layers that the data meets first: was there ever a training that they come from?"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from sleuth.core.contract.adapter import Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Frame, Observation, Parameter, Role
from sleuth.core.stage import Stage
from sleuth.core.trial import FrozenTrunk
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.model.freshness import fans_of, normal_draw, uniform_draw, within_bounds

WEIGHTY = ("linear", "conv", "recurrent", "attention")
NORMS = ("norm", "batchnorm")
# What a norm adds, by the names that frameworks give it; the rest scales.
SHIFTS = ("bias", "beta")
# Fewer numbers may look like a draw by chance.
LEAST_NUMBERS = 1000


@probe(title="Looking at frozen layers", stage=Stage.MODEL, rank=3, emits=(FrozenTrunk,), needs=("forward",))
def trunk(lab: Lab) -> Iterator[Observation]:
    if not isinstance(lab.adapter, Describes):
        raise Unsupported(f"the {lab.adapter.name} adapter cannot describe a model")
    if lab.subject.step is not None:
        raise Unsupported("in a step of one's own what is frozen may change from call to call")
    architecture = lab.architecture
    matrices = [p for p in _known(architecture) if p.family in WEIGHTY and len(p.shape) >= 2]
    if all(p.trainable for p in matrices):
        raise Unsupported("no layer is frozen")
    used = in_order_of_use(lab, matrices)
    first = next((i for i, p in enumerate(used) if p.trainable), len(used))
    stretch, behind = used[:first], used[first:]
    if not stretch or not behind or not all(p.trainable for p in behind):
        raise Unsupported("what is frozen is not a stretch at the beginning")
    frozen = [p for p in matrices if not p.trainable]
    mark = _mark(lab, architecture) if sum(p.size for p in frozen) >= LEAST_NUMBERS else None
    yield FrozenTrunk(
        first=stretch[0].path,
        last=stretch[-1].path,
        layers=len({p.layer for p in stretch}),
        numbers=sum(p.size for p in frozen),
        total=sum(p.size for p in matrices),
        mark=mark if mark and _feeds(lab, stretch[0], behind[-1]) else None,
    )


def _known(architecture: Architecture) -> list[Parameter]:
    return [p for p in architecture.parameters if p.family in (*WEIGHTY, *NORMS) and p.tied_to is None and p.size]


def in_order_of_use(lab: Lab, matrices: list[Parameter]) -> list[Parameter]:
    order = {path: i for i, path in enumerate(_sizes(lab, training=True))}
    return sorted((p for p in matrices if p.layer in order), key=lambda p: order[p.layer])


def _sizes(lab: Lab, training: bool) -> dict[str, tuple[float, ...]]:
    """What the layers give, in the order of calls. In evaluation mode some frameworks run whole blocks at once."""
    snapshot = lab.bench.snapshot()
    try:
        lab.bench.set_training(training)
        frames = [o for o in lab.bench.observe(lab.batch, 0) if isinstance(o, Frame) and o.role is Role.ACTIVATION]
        return {path: tuple(row) for f in frames for path, row in zip(f.paths, f.table, strict=True)}
    finally:
        lab.bench.restore(snapshot)


def _feeds(lab: Lab, frozen: Parameter, learning: Parameter) -> bool:
    """Does what learns get its input from there? A momentum copy or a fixed target beside it does not feed it."""
    snapshot = lab.bench.snapshot()
    try:
        before = _sizes(lab, training=False)
        values = values_of(lab, frozen.path)
        lab.bench.write(frozen.path, values.reshape(-1)[::-1].reshape(values.shape).copy())
        after = _sizes(lab, training=False)
    finally:
        lab.bench.restore(snapshot)
    return before.get(learning.layer) != after.get(learning.layer)


def values_of(lab: Lab, path: str) -> np.ndarray:
    return lab.adapter.values(lab.bench.parameter(path))


def _mark(lab: Lab, architecture: Architecture) -> str | None:
    """What shows that no training ever touched the frozen layers; None where one of them looks trained, or nothing shows it."""
    layers: dict[str, list[Parameter]] = defaultdict(list)
    hidden = {layer.path: layer.settings.get("out") for layer in architecture.layers if layer.family == "recurrent"}
    for p in _known(architecture):
        if not p.trainable:
            layers[p.layer].append(p)
    marks: list[str] = []
    for path, parameters in layers.items():
        lab.tick()
        found = _norm(lab, parameters) if parameters[0].family in NORMS else _weights(lab, parameters, hidden.get(path))
        if found is None:
            return None
        marks += found
    norms, ends, zeros = (marks.count(kind) for kind in ("norm", "ends", "zeros"))
    if norms:
        return "their normalisation layers still scale by exactly one and shift by exactly zero"
    if ends > 1:
        return "their weights end exactly where a fresh draw ends"
    return "their biases are still exactly zero" if zeros > 1 else None


def _norm(lab: Lab, parameters: list[Parameter]) -> list[str] | None:
    values = [(p.path.rpartition(".")[2], values_of(lab, p.path)) for p in parameters]
    same = all(np.all(v == (0.0 if name in SHIFTS else 1.0)) for name, v in values)
    return ["norm"] if same else None


def _weights(lab: Lab, parameters: list[Parameter], hidden: int | None) -> list[str] | None:
    """Marks of one layer; None where it looks trained."""
    marks = []
    fans = [f for p in parameters if len(p.shape) >= 2 for f in fans_of(p.shape)]
    fans += [hidden] if isinstance(hidden, int) else []
    for p in parameters:
        values = values_of(lab, p.path).astype(np.float64)
        if len(p.shape) < 2:
            marks += [] if values.any() else ["zeros"]
            if values.any() and not within_bounds(values, fans):
                return None
            continue
        own = [*fans_of(p.shape), *fans]
        if uniform_draw(values, own, half="16" in p.dtype):
            marks.append("ends")
        elif not normal_draw(values, own):
            return None
    return marks
