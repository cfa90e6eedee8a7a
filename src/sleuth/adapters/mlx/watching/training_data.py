"""What a training is fed with and asked about: facts about its data while it runs, and an examination after the end."""

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.arrays import is_array
from sleuth.adapters.mlx.loss_calls import own_call
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.asked_inputs import Asking
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.kept_training import Keeper
from sleuth.adapters.mlx.watching.recomputed_loss import last_line
from sleuth.adapters.mlx.watching.seen_batches import Passing
from sleuth.adapters.mlx.watching.tape import Tape
from sleuth.adapters.mlx.watching.validation_target import kind_of
from sleuth.core.contract.kept import Kept
from sleuth.core.location import Location
from sleuth.core.observation import Evaluation, LossCall
from sleuth.core.runtime.place import is_users
from sleuth.core.subject import Parts


class Material:
    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._passing = Passing(keeps=keeps)
        self._asking = Asking()
        self._keeper: Keeper | None = None
        self._tape: Tape | None = None
        self._first = 0  # the step that is on the tape, and whose weights are kept
        self._args: Any = None  # of its function
        self.loss_line: Location | None = None  # that makes its loss

    def gradient_begins(
        self, step: int, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any], *, looked: bool
    ) -> None:
        self._validated(taken.model)
        self._passing.begin(step, taken.fed(args), kwargs, looked=looked)
        if not self._first:
            self._asking.expect(taken.fun)

    def recording(self, step: int, model: nn.Module, optimisers: list[Optimizer]) -> Tape | None:
        """The first loss that is looked at is written down."""
        if self._first:
            return None
        self._begin(step, model, optimisers)
        self._tape, self._args = Tape(model), self._passing.draft_args()
        return self._tape

    def _begin(self, step: int, model: nn.Module, optimisers: list[Optimizer]) -> None:
        self._first = step
        if self._keeps:
            self._keeper = Keeper(model, optimisers)

    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._passing.door(args, kwargs)

    def gradient_ended(self) -> None:
        self._passing.end()

    def failed(self) -> None:
        self._passing.failed()

    def compiled_begins(self, step: int, model: nn.Module, optimiser: Optimizer) -> None:
        self._validated(model)
        if not self._first:
            self._begin(step, model, [optimiser])

    def compiled(self, step: int, args: tuple[Any, ...], kwargs: dict[str, Any], tape: Tape | None, *, looked: bool) -> None:
        """A step of which only the arguments are seen; its tape was written when MLX read it."""
        self._passing.begin(step, args, kwargs, looked=looked)
        if step == self._first and tape is not None:
            self._passing.learn(tape, self._passing.draft_args(), None)
            self._asking.kind = kind_of(self._passing.draft_target(), _loop())
        self._passing.end()

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any], step: int) -> None:
        """Outside of a gradient."""
        if self._keeps:
            frame = sys._getframe(1)
            while frame is not None and frame.f_globals.get("__name__", "").startswith("sleuth."):
                frame = frame.f_back  # type: ignore[assignment]
            self._asking.forward(args, kwargs, step, frame)

    def asked_inside(self, given: dict[str, Any], inputs: tuple[str, ...], step: int) -> None:
        """By a compiled function that was given these; `inputs`: paths of what the model gets of it."""
        if self._keeps and all(path in given for path in inputs):
            asked = tuple(given[path] for path in inputs)
            self._asking.inside(asked, [array for path, array in given.items() if path not in inputs], step)

    def answered(self, output: Any) -> None:
        if self._keeps:
            self._asking.answered(output)

    def _validated(self, model: nn.Module | None) -> None:
        if self._asking.validating.waits:
            self._asking.validating.settle(self._passing.reading, model)

    def evaluations(self, model: nn.Module) -> Iterator[Evaluation]:
        """When the training is over."""
        self.settle()
        self._validated(model)
        return self._asking.validating.evaluations(self._passing.reservoir.taken())

    def loss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Outside of a gradient, too."""
        self._asking.loss(args[1] if len(args) > 1 else kwargs.get("targets"))

    def looked(self, look: Look, step: int) -> Iterator[LossCall]:
        """Everything that the step is made of has its values now."""
        if step == self._first and len(look.losses) == 1:
            value = float(look.losses[0].item())
            if self._keeper is not None:
                self._keeper.first_loss = value
            if self._tape is not None and len(look.hearings) == 1:
                answers = [self._tape.arrays[n] for n in self._tape.outputs]
                self.loss_line = last_line(self._tape, value)
                self._passing.learn(self._tape, self._args, value)
                self._asking.target_path = self._passing.target_path
                self._asking.kind = kind_of(self._passing.first_target(), _loop())
                yield from self._own_loss(look, answers)
        self._args = None
        self.settle()

    def _own_loss(self, look: Look, answers: list[Any]) -> Iterator[LossCall]:
        """That is none of MLX's own: known by what it says to other outputs."""
        reading, hearing = self._passing.reading, look.hearings[0]
        if hearing.losses or reading is None or reading.loss is None or len(answers) != 1:
            return
        target, loss = self._passing.first_target(), reading.loss
        if not is_array(target):
            return
        ask, places = (lambda out: loss(out, target)), (loss.location, loss.meets)
        call = own_call("your loss", answers[0], target, look.losses[0], hearing, ask, *places)
        if call is not None:
            yield call

    def settle(self) -> None:
        self._passing.settle()
        self._asking.settle()

    def take(self) -> tuple[tuple[int, Parts], ...]:
        """Batches whose facts are to be told."""
        return tuple(self._passing.take_settled())

    def close(self, model: nn.Module | None) -> Kept | None:
        self.settle()
        self._passing.close()
        keeper, self._keeper, self._tape = self._keeper, None, None
        return None if keeper is None or model is None else keeper.kept(model, self._passing, self._asking)


def _loop() -> CodeType | None:
    """The user's code that takes steps just now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else frame.f_code
