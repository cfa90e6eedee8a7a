"""Hears the loss expression of a few steps: the first two, then ever more rarely. On other steps it costs nothing."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.listening.listener import Lost
from sleuth.adapters.torch.compat import PRIVATE
from sleuth.adapters.torch.watching.origin import tensor_sources
from sleuth.adapters.torch.watching.origin.lines import Line
from sleuth.adapters.torch.watching.origin.tape import Tape, TapeRecorder, pull, push
from sleuth.adapters.torch.watching.step_memory import Memory

# A loop may go backward several times a step, each time from another expression.
MOST_TAPES = 6
# How a model is wired shows in its first steps: later ones are not asked where inside it something was done.
LAST_LINES = 2


RECORDING: set[TapeRecorder] = set()


class Learner:
    """`open` while it hears; `due` is the next step to hear. Both are for whoever would rather not call."""

    def __init__(self, model: nn.Module, lost: Lost) -> None:
        self._model, self._lost = model, lost
        self._recorder: TapeRecorder | None = None
        self.open = False
        self.due = 0
        self.tapes: list[Tape] = []  # the latest first

    def begin(self, step: int) -> None:
        """A step begins, or its batch has come: what is prepared before the model is called may go into the loss."""
        if self._recorder is not None:
            if not self._recorder.outputs:
                self._recorder.start_over()
        elif step >= self.due and not _compiles():
            recorder = TapeRecorder(self._lost, lines=step <= LAST_LINES)
            if push(recorder):
                self._recorder, self.open = recorder, True
                RECORDING.add(recorder)

    def step_ended(self, step: int) -> None:
        """A loop that goes backward another way is not heard."""
        self.stop()
        if step >= self.due:  # 0, 1, 2, 4, 8, …
            self.due = 1 << step.bit_length()
        self.begin(step + 1)

    def forward(self) -> None:
        """The model is called: its own operations are done again from its inputs."""
        if self._recorder is not None:
            self._recorder.paused = True

    def resume(self) -> None:
        if self._recorder is not None:
            self._recorder.paused = False

    def output(self, step: int, memory: Memory, output: Any) -> None:
        if self._recorder is None or (self._recorder.full and not self._recorder.outputs):
            self.begin(step)
        if self._recorder is not None:
            self._recorder.paused = False
            if memory.forwards and not memory.cut:
                self._recorder.returned(len(memory.forwards) - 1, output)

    def backward(self, loss: torch.Tensor, memory: Memory, others: Callable[[], Sequence[torch.Tensor]]) -> None:
        recorder = self._recorder
        if recorder is None:
            return
        self.stop()
        tape = None if memory.cut else recorder.tape(loss)
        if tape is None or not tape.calls or any(call.opaque for call in tape.calls):
            return
        tensor_sources.learn(tape, recorder.alive, tensor_sources.Surroundings(self._model, memory, others()))
        self.tapes = [tape, *(t for t in self.tapes if not _alike(t, tape))][:MOST_TAPES]

    def stop(self) -> None:
        if self._recorder is not None:
            self._recorder.paused = True
            pull(self._recorder)
            RECORDING.discard(self._recorder)
            self._recorder, self.open = None, False


def line_behind(number: int | None) -> Line | None:
    """The user's line behind a node of the graph, on the steps that are heard."""
    lines = [recorder.lines for recorder in RECORDING if recorder.lines is not None]
    found = (heard.find(number) for heard in lines) if number is not None else ()
    return next((line for line in found if line is not None), None)


def _alike(one: Tape, other: Tape) -> bool:
    """The same lines do the same things."""
    return [(c.function, c.location) for c in one.calls] == [(c.function, c.location) for c in other.calls]


def _compiles() -> bool:
    """torch.compile guards what it makes by the modes that it met: with one more it would compile anew."""
    backends = PRIVATE.if_imported("torch._dynamo.eval_frame.cached_backends")
    # Optimisers ask for one of None: not to be compiled.
    return backends is not None and any(backend is not None for backend in backends.values())


def _forget() -> None:
    """A worker of a loader has no loss to hear."""
    while RECORDING:
        pull(RECORDING.pop())


os.register_at_fork(after_in_child=_forget)
