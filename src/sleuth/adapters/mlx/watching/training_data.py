"""What a training is fed with and asked about: facts about its data while it runs, and an examination after the end."""

import sys
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.arrays import is_array
from sleuth.adapters.mlx.loss_calls import own_call
from sleuth.adapters.mlx.watching.asked_inputs import Asking
from sleuth.adapters.mlx.watching.batches import settled
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.kept_training import Keeper
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.recomputed_loss import last_line
from sleuth.adapters.mlx.watching.recorder import Gradient, NotingRecorder
from sleuth.adapters.mlx.watching.seen_batches import SeenBatches
from sleuth.adapters.mlx.watching.tape import Tape
from sleuth.adapters.mlx.watching.validation_target import kind_of
from sleuth.core.contract.kept import Kept
from sleuth.core.location import Location
from sleuth.core.observation import LossCall
from sleuth.core.runtime.place import is_users
from sleuth.core.subject import Parts


class TrainingData(NotingRecorder):
    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.kept: Kept | None = None  # after the end
        self.loss_line: Location | None = None  # that makes the loss of the first step
        self._keeps = keeps
        self._batches = SeenBatches(keeps=keeps)
        self._asking = Asking()
        self._keeper: Keeper | None = None
        self._tape: Tape | None = None
        self._first: int | None = None  # the step that is on the tape, and whose weights are kept
        self._args: Any = None  # of its function

    def gradient_begins(self, gradient: Gradient) -> None:
        taken = gradient.taken
        self._validated(taken.model)
        self._batches.begin(gradient.step, taken.fed(gradient.args), gradient.kwargs, looked=gradient.looked)
        if self._first is not None:
            return
        self._asking.expect(taken.fun)
        if gradient.looked:  # the first loss that is looked at is written down
            self._begin(gradient.step, gradient.model, gradient.optimisers)
            self._tape, self._args = Tape(gradient.model), self._batches.draft_args()
            gradient.listening.enter_context(self._tape.listening())

    def _begin(self, step: int, model: nn.Module, optimisers: Sequence[Optimizer]) -> None:
        self._first = step
        if self._keeps:
            self._keeper = Keeper(model, optimisers)

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Inside of a gradient."""
        self._batches.door(args, kwargs)

    def backward_end(self, loss: Any) -> None:
        self._batches.end()

    def backward_failed(self, loss: Any) -> None:
        self._batches.failed()

    def compiled_begins(self, step: int, model: nn.Module, optimiser: Optimizer) -> None:
        self._validated(model)
        if self._first is None:
            self._begin(step, model, [optimiser])

    def compiled(self, step: int, done: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], looked: bool) -> None:
        """Its tape was written when MLX read it."""
        self._batches.begin(step, args, kwargs, looked=looked)
        if step == self._first and done.tape is not None:
            self._batches.learn(done.tape, self._batches.draft_args(), None)
            self._asking.kind = kind_of(self._batches.draft_target(), _loop())
        self._batches.end()

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any], step: int) -> None:
        if self._keeps:
            frame = sys._getframe(1)
            while frame is not None and frame.f_globals.get("__name__", "").startswith("sleuth."):
                frame = frame.f_back  # type: ignore[assignment]
            self._asking.forward(args, kwargs, step, frame)

    def asked_inside(self, given: dict[str, Any], inputs: tuple[str, ...], step: int) -> None:
        if self._keeps and all(path in given for path in inputs):
            asked = tuple(given[path] for path in inputs)
            self._asking.inside(asked, [array for path, array in given.items() if path not in inputs], step)

    def output(self, output: Any) -> None:
        """Outside of a gradient."""
        if self._keeps:
            self._asking.answered(output)

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        """Outside of a gradient."""
        self._asking.loss(args[1] if len(args) > 1 else kwargs.get("targets"))

    def looked(self, look: Look, copy: LookCopy) -> None:
        if copy.step == self._first and len(look.losses) == 1:
            value = float(look.losses[0].item())
            if self._keeper is not None:
                self._keeper.first_loss = value
            if self._tape is not None and len(look.hearings) == 1:
                self._learn(self._tape, look, value)
        self._args = None
        self._settle()

    def _learn(self, tape: Tape, look: Look, value: float) -> None:
        answers = [tape.arrays[n] for n in tape.outputs]
        self.loss_line = last_line(tape, value)
        self._batches.learn(tape, self._args, value)
        self._asking.target_path = self._batches.target_path
        self._asking.kind = kind_of(self._batches.first_target(), _loop())
        call = self._own_loss(look, answers)
        self.notes += [] if call is None else [call]

    def _own_loss(self, look: Look, answers: list[Any]) -> LossCall | None:
        """That is none of MLX's own: known by what it says to other outputs."""
        reading, hearing = self._batches.reading, look.hearings[0]
        target = self._batches.first_target()
        if hearing.losses or reading is None or reading.loss is None or len(answers) != 1 or not is_array(target):
            return None
        loss = reading.loss
        ask, places = (lambda out: loss(out, target)), (loss.location, loss.meets)
        return own_call("your loss", answers[0], target, look.losses[0], hearing, ask, *places)

    def _validated(self, model: nn.Module | None) -> None:
        if self._asking.validating.waits:
            self._asking.validating.settle(self._batches.reading, model)

    def _settle(self) -> None:
        self._batches.settle()
        self._asking.settle()

    def take_batches(self) -> tuple[tuple[int, Parts], ...]:
        """Batches whose facts are to be told."""
        return tuple(self._batches.take_settled())

    def ended(self, model: nn.Module, optimiser: Optimizer | None) -> None:
        self._settle()
        self._validated(model)
        self.notes += self._asking.validating.evaluations(settled(self._batches.reservoir))
        self._batches.close()
        keeper, self._keeper, self._tape = self._keeper, None, None
        self.kept = None if keeper is None else keeper.kept(model, self._batches, self._asking)


def _loop() -> CodeType | None:
    """The user's code that takes steps just now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else frame.f_code
