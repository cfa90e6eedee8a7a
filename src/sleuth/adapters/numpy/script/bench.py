"""A step of a script as a bench: its loss and its gradients for any weights, on the samples that it had."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sleuth.adapters.numpy.array_lines import Births
from sleuth.adapters.numpy.backward_lines import Followed
from sleuth.adapters.numpy.script.network import HeardNetwork
from sleuth.adapters.numpy.script.operands import true_gradient
from sleuth.adapters.numpy.script.replay import Replay
from sleuth.adapters.numpy.state import Snapshot
from sleuth.core.contract.adapter import Bench, Gradients
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location
from sleuth.core.observation import Failure, Observation
from sleuth.core.runtime.source.loading import current
from sleuth.core.subject import Parts, Usage

ONLY_A_STEP = "which of the script's arrays is its input is not known: its steps can be done again, and nothing else"
# Relative to the weights, for the slope along a gradient.
STEP = 1e-5
# Ratios of what gradients say to what the loss does that are the same.
ALIKE = 1e-3
# Of the largest entry: clipped ones are all of one size.
CLIPPED = 1e-12


class ScriptBench(Bench):
    def __init__(self, replay: Replay, first: Mapping[str, np.ndarray]) -> None:
        self._replay = replay
        self._scale: float | None = None
        for path, values in first.items():
            self.write(path, values)

    def paths(self) -> tuple[str, ...]:
        return tuple(self._replay.weights)

    def parameter(self, path: str) -> np.ndarray:
        return self._replay.weights[path][0]

    def write(self, path: str, values: np.ndarray) -> None:
        for array in self._replay.weights[path]:
            array[...] = values

    def snapshot(self) -> Snapshot:
        return self._replay.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        self._replay.restore(snapshot)

    def set_training(self, on: bool) -> None:
        """A step is always a step of training."""

    def loss(self, batch: Parts) -> float:
        return self._replay.loss()

    def gradients(self, batch: Parts) -> Gradients:
        found = {path: true_gradient(event) for path, event in self._replay.step().items()}
        if not any(g is not None for g in found.values()):
            raise Unsupported("the statements that update the weights do not show their gradients")
        for path, gradient in found.items():
            if gradient is not None and _is_clipped(gradient):
                raise Unsupported(f"the gradient of {path} is clipped")
        if self._scale is None:
            self._scale = self._told_scale({p: g for p, g in found.items() if g is not None})
        scale = self._scale
        return Gradients(self.loss(batch), {path: None if g is None else g / scale for path, g in found.items()})

    def _told_scale(self, gradients: Mapping[str, np.ndarray]) -> float:
        """Many a script descends a multiple of the loss that it tells: half of it, or the sum where it tells the mean."""
        ratios = {path: r for path, g in gradients.items() if (r := self._ratio(path, g)) is not None}
        if not ratios:
            raise Unsupported("the loss that the script tells does not depend on its weights smoothly")
        sizes = [abs(ratio) for ratio in ratios.values()]
        most = max(([s for s in sizes if abs(s - one) <= ALIKE * one] for one in sizes), key=len)
        against = all(ratio < 0 for ratio in ratios.values())
        if (len(most) < 2 and len(sizes) > 1) or (against and self._replay.loss() < 0):
            raise Unsupported("the loss that the script tells is another one than its gradients are of")
        return float(np.median(most))

    def _ratio(self, path: str, gradient: np.ndarray) -> float | None:
        """What the gradient says, of what the loss does along it."""
        size = float(np.linalg.norm(gradient))
        if size == 0 or not np.isfinite(size):
            return None
        values = np.array(self.parameter(path))
        h = STEP * max(float(np.abs(values).max(initial=0.0)), 1e-2)
        told = []
        for sign in (1, -1):
            self.write(path, values + sign * h * gradient / size)
            told.append(self._replay.loss())
        self.write(path, values)
        slope = (told[0] - told[1]) / (2 * h)
        return size / slope if np.isfinite(slope) and abs(slope) > 1e-10 else None

    def double(self) -> "ScriptBench":
        if any(self.parameter(path).dtype != np.float64 for path in self.paths()):
            raise Unsupported("the script computes in less than float64, which shows no slopes")
        return self

    def followed(self) -> Followed:
        births, found = Births(), dict[str, Any]()
        births.follow(lambda: found.update(self._replay.step()))
        made = {path: true_gradient(event) for path, event in found.items()}
        return Followed(births, made, {path: self.parameter(path) for path in self.paths()})

    def backward_line(self, path: str, *, upstream: bool) -> Location | None:
        return self.followed().line(path, upstream=upstream)

    def apply(self, batch: Parts) -> None:
        raise Unsupported(ONLY_A_STEP)

    def step(self, batch: Parts) -> float:
        raise Unsupported(ONLY_A_STEP)

    def forward(self, inputs: Any) -> Any:
        raise Unsupported(ONLY_A_STEP)

    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        raise Unsupported(ONLY_A_STEP)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        raise Unsupported(ONLY_A_STEP)

    def usage(self, batch: Parts) -> Usage | None:
        return None

    @property
    def lr(self) -> float | None:
        return None

    def set_lr(self, lr: float) -> None:
        raise Unsupported(ONLY_A_STEP)

    @property
    def weight_decay(self) -> float | None:
        return None

    def scale_weight_decay(self, factor: float) -> None:
        raise Unsupported(ONLY_A_STEP)

    def explain_failure(self, error: Exception, phase: str) -> Failure:
        raise Unsupported(ONLY_A_STEP)


def _is_clipped(gradient: np.ndarray) -> bool:
    sizes = np.abs(gradient).reshape(-1)
    largest = float(sizes.max(initial=0.0))
    return largest > 0 and int((sizes >= largest * (1 - CLIPPED)).sum()) > 1


@contextmanager
def open_script_bench(network: HeardNetwork) -> Iterator[Bench]:
    hook = current()
    if network.loop is None or hook is None:
        raise Unsupported(network.no_loop or "the script's own lines say nothing any more")
    replay = Replay(network.loop, network.slots, network.losses, hook)
    try:
        yield ScriptBench(replay, {name: network.first[name] for name in replay.weights})
    finally:
        replay.close()
