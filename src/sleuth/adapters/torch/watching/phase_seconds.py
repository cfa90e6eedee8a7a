"""Seconds of the phases of a step that is listened to: data, forward, backward, optimiser, and what is asked without a graph.

On an accelerator the calls return before their work is done, so nothing is told there.
"""

import time
from collections.abc import Mapping

import torch
from torch import nn

from sleuth.adapters.listening.steps import NOTHING
from sleuth.adapters.torch.watching import patches


class PhaseSeconds:
    def __init__(self, model: nn.Module) -> None:
        self._runs = all(p.device.type == "cpu" for p in model.parameters())
        self._seconds: dict[str, float] = {}
        self._began = self._step_began = 0.0
        self._inner = 0.0  # what other phases took since then: a closure runs them inside the step

    def data(self, first: bool) -> None:
        """A batch has just come from a loader. The first one of a pass also waits for workers to start."""
        self._add("first-data" if first else "data", patches.waited_seconds())

    def forward(self) -> None:
        self._began = time.perf_counter()

    def output(self) -> None:
        self._add("forward" if torch.is_grad_enabled() else "validation", time.perf_counter() - self._began)

    backward = forward

    def backward_end(self) -> None:
        self._add("backward", time.perf_counter() - self._began)

    def step(self) -> None:
        self._step_began, self._inner = time.perf_counter(), sum(self._seconds.values())

    def step_end(self) -> None:
        inside = sum(self._seconds.values()) - self._inner
        self._add("optimiser", max(time.perf_counter() - self._step_began - inside, 0.0))

    def take(self) -> Mapping[str, float]:
        seconds, self._seconds = self._seconds, {}
        return seconds if self._runs else NOTHING

    def _add(self, phase: str, seconds: float) -> None:
        self._seconds[phase] = self._seconds.get(phase, 0.0) + seconds
