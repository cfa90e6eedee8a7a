"""What the model is asked outside of training: validation, by its sources."""

from collections.abc import Mapping
from types import CodeType, FrameType, MethodType
from typing import Any
from weakref import ReferenceType, ref

import mlx.core as mx

from sleuth.adapters.common.reservoir import Reservoir
from sleuth.adapters.mlx.arrays import is_any_array
from sleuth.adapters.mlx.watching.batches import Draft, arrays_by_path, inputs_of, settled, without_models
from sleuth.adapters.mlx.watching.validation_loss import Answer, Validating
from sleuth.adapters.mlx.watching.validation_target import Kind, target_beside
from sleuth.core.contract.kept import Group

# Sources that are told apart.
MOST_GROUPS = 4
MOST_BYTES = 16 << 20
# Arrays that are remembered; a loop that makes them anew would go on for ever.
MOST_REMEMBERED = 64
# Drafts that wait for the next look: a validation between two looks is as long as it likes.
MOST_WAITING = 64
COPIES = 0
# So many times in a row no target stood beside what was asked: then none will.
MOST_FRUITLESS = 32


class Pass:
    """From one source."""

    def __init__(self) -> None:
        self.reservoir: Reservoir[Draft] = Reservoir(MOST_BYTES)
        self.samples = 0
        self._counted = 0
        self._step = -1

    def count(self, step: int, samples: int) -> None:
        """Samples between two steps of the training are those of one pass."""
        self._counted = self._counted + samples if step == self._step else samples
        self._step = step
        self.samples = max(self.samples, self._counted)


class Asking:
    def __init__(self) -> None:
        self.target_path: str | None = None  # among the arguments of the user's loss function
        self._loss_code: CodeType | None = None
        self._is_method = False
        self._passes: dict[int, Pass] = {}  # by the array that they come from
        self._arrays: dict[int, ReferenceType[mx.array]] = {}
        self._waiting: list[Draft] = []
        self._latest: Draft | None = None  # that may still get its target
        self.validating = Validating()
        self.kind: Kind | None = None  # of the training's targets, once it is known
        self._fruitless = 0
        self._question: tuple[int, int, Any, Any] | None = None  # source, step, input and target, until it is answered
        self._answer: Answer | None = None

    def expect(self, loss: Any) -> None:
        """The function that training takes the gradient of."""
        self._is_method = isinstance(loss, MethodType)
        self._loss_code = getattr(loss, "__code__", None)

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], step: int, frame: FrameType | None) -> None:
        self._latest = self._question = self._answer = None
        inputs = inputs_of(args, kwargs)
        first = next((a for _, a in arrays_by_path(inputs)), None)
        if first is None or not first.ndim:
            return
        target = self._target(first, frame)
        key = self._key(first)
        self._question = (key, step, first, target)
        self._keep(key, inputs, first, target, step)

    def inside(self, args: tuple[Any, ...], others: list[Any], step: int) -> None:
        """A compiled function asks: its target is among what it was given besides."""
        inputs = inputs_of(args, {})
        first = next((a for _, a in arrays_by_path(inputs)), None)
        if first is None or not first.ndim:
            return
        fits = [a for a in others if self.kind is not None and self.kind.fits(a, first.shape[0])]
        self._keep(self._key(first), inputs, first, fits[0] if len(fits) == 1 else None, step)
        self._latest = None

    def valued(self, args: tuple[Any, ...], target: Any, step: int, loss: mx.array) -> None:
        """The loss function itself was asked, for its value."""
        inputs = inputs_of(args, {})
        first = next((a for _, a in arrays_by_path(inputs)), None)
        if first is not None and first.ndim:
            key = self._key(first)
            self._keep(key, inputs, first, target, step)
            self._latest = None
            self.validating.valued(key, step, first, loss)

    def _keep(self, key: int, inputs: Any, first: Any, target: Any, step: int) -> None:
        found = self._pass(key)
        if found is None or len(self._waiting) >= MOST_WAITING:
            return
        found.count(step, first.shape[0])
        place = found.reservoir.wants()
        if place is None:
            return
        draft = Draft(step, None, without_models(inputs), bytes=sum(a.nbytes for _, a in arrays_by_path(inputs)))
        draft.target = None if target is None else without_models(target)
        found.reservoir.put(place, draft, draft.bytes)
        self._waiting.append(draft)
        self._latest = draft

    def answered(self, output: Any) -> None:
        question, self._question = self._question, None
        if question is not None:
            source, step, given, target = question
            self._answer = self.validating.answered(source, step, given, output, target)

    def loss(self, target: Any) -> None:
        """A loss of MLX's own is given it."""
        draft, self._latest = self._latest, None
        answer, self._answer = self._answer, None
        if not is_any_array(target) or not target.ndim:
            return
        if answer is not None and answer.target is None and target.shape[0] == answer.given.shape[0]:
            answer.target = target
        if draft is None or draft.target is not None:
            return
        first = next(a for _, a in arrays_by_path(draft.door))
        if target.shape[0] == first.shape[0]:
            draft.target = without_models(target)

    def settle(self) -> None:
        waiting, self._waiting, self._latest = self._waiting, [], None
        kept = {id(d) for one in self._passes.values() for d in one.reservoir.items}
        for draft in waiting:
            if id(draft) in kept:
                draft.settle(draft.door, draft.target, first=True)

    def groups(self) -> list[Group]:
        found = [(key, one, settled(one.reservoir)) for key, one in self._passes.items()]
        return [Group(batches, one.samples, key != COPIES) for key, one, batches in found if batches]

    def _key(self, first: Any) -> int:
        known = self._arrays.get(id(first))
        key = id(first) if known is not None and known() is first else COPIES
        if isinstance(first, mx.array):
            if len(self._arrays) >= MOST_REMEMBERED:
                self._arrays.clear()
            self._arrays[id(first)] = ref(first)
        return key

    def _pass(self, key: int) -> Pass | None:
        if key not in self._passes and key != COPIES and len(self._passes) > MOST_GROUPS:
            return None
        return self._passes.setdefault(key, Pass())

    def _target(self, first: Any, frame: FrameType | None) -> Any:
        target = self._among_arguments(frame, first.shape[0])
        if target is not None or self.kind is None or self._fruitless >= MOST_FRUITLESS:
            return target
        target = target_beside(first, frame, self.kind)
        self._fruitless = 0 if target is not None else self._fruitless + 1
        return target

    def _among_arguments(self, frame: FrameType | None, samples: int) -> Any:
        """The user's loss function, called for its value: its target stands where it does in training."""
        if frame is None or frame.f_code is not self._loss_code or self.target_path is None:
            return None
        code = frame.f_code
        names = code.co_varnames[self._is_method : code.co_argcount]
        known = dict(arrays_by_path((tuple(frame.f_locals.get(name) for name in names), {})))
        target = known.get(self.target_path)
        return target if target is not None and target.ndim and target.shape[0] == samples else None
