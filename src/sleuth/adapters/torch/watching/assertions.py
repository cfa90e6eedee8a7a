"""What the user says of the layers' outputs is looked at on every forward of the model."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.measuring import measure_quickly
from sleuth.adapters.torch.watching import activity
from sleuth.adapters.torch.watching.loop import Loop
from sleuth.core.contract.expectation import Expect
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import Statistics

FINITE = Expect(finite=True)


class Assertions:
    """Every layer that breaks its word is told once; the first one is the answer."""

    def __init__(self, loop: Loop, tell: Callable[[str, bool], None]) -> None:
        """`tell` is given what was broken, and whether it is an assertion or our own failure to look."""
        self._loop = loop
        self._expected = _by_layer(loop.model, loop.guard.expectations)
        if loop.guard.every_activation:
            for module in loop.model.modules():
                if not module._modules:
                    self._expected.setdefault(id(module), []).append(FINITE)
        self._paths = {id(module): path for path, module in loop.model.named_modules()}
        self._broken: set[int] = set()
        self._blamed = -1  # the step in which a layer was found not to be finite: those behind it only pass that on
        self._tell = tell

    def start(self) -> None:
        if self._expected:
            activity.start_recording(self)

    def stop(self) -> None:
        activity.stop_recording(self)

    def note(self, module: nn.Module, output: Any) -> None:
        expected = self._expected.get(id(module))
        if expected is not None and id(module) not in self._broken:
            self._look(module, output, expected)

    def give_up(self, error: Exception) -> None:
        self._expected = {}
        try:
            self._tell(f"assertions were no longer looked at: {type(error).__name__}: {error}", False)
        except Exception as another:
            self._loop.give_up(another)

    def speak_up(self) -> None:
        if self._loop.due:
            self._loop.do_what_is_due()

    def _look(self, module: nn.Module, output: Any, expected: list[Expect]) -> None:
        for _, tensor in leaves(output, lambda thing: isinstance(thing, torch.Tensor)):
            for expectation in expected:
                found = expectation.broken_by_shape(tuple(tensor.shape))
                if found is None and expectation.reads_values and tensor.numel():
                    found = expectation.broken_by_values(Statistics.from_row(measure_quickly([tensor.detach()])[0]))
                    if found is not None and expectation.finite:
                        if self._blamed == self._loop.steps:
                            return
                        self._blamed = self._loop.steps
                if found is not None:
                    self._broken_by(module, *found)
                    return

    def _broken_by(self, module: nn.Module, expected: str, got: str) -> None:
        self._broken.add(id(module))
        path = self._paths[id(module)] or "the model"
        message = f"the output of {path} ({type(module).__name__}) at step {self._loop.steps}: expected {expected}, got {got}"
        self._tell(message, True)


def _by_layer(model: nn.Module, expectations: Mapping[str, Expect]) -> dict[int, list[Expect]]:
    found: dict[int, list[Expect]] = {}
    for pattern, expectation in expectations.items():
        matching = [module for path, module in model.named_modules() if path and fnmatchcase(path, pattern)]
        if not matching:
            there = ", ".join([path for path, _ in model.named_modules() if path][:8]) or "none"
            raise UnusableInput(f"no layer is called {pattern!r}, which `assertions` names; there are: {there}")
        for module in matching:
            found.setdefault(id(module), []).append(expectation)
    return found
