"""Validation, where the loop does some: forwards in evaluation mode without gradients, put to the loss of the training.

What the model says on other occasions without gradients (a teacher, a target network, samples) meets no such loss.
"""

import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils.data import RandomSampler, SequentialSampler

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.loss_calls import bind_arguments, scalar
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.recorders.losses import Trail
from sleuth.adapters.torch.watching.recorders.predictions import Answers, Tally, answers_of
from sleuth.core.location import Location
from sleuth.core.observation import Evaluation, Observation, Split
from sleuth.core.runtime.tree import leaves

# The training's own loss is learned in so many looks.
LEARNING = 3
# Answers that wait on a device; then they are counted.
MOST_WAITING = 256
# What else makes a loss another one than its name says.
SETTINGS = ("reduction", "label_smoothing", "ignore_index", "beta", "delta", "log_target", "margin")
DEFAULTS = {"reduction": "mean", "label_smoothing": 0.0, "ignore_index": -100}
WHOLE = 1e-4

Kind = tuple[Any, ...]


class Sums:
    """One pass over some data. On a device the sums stay there until they are asked for."""

    def __init__(self, location: Location | None) -> None:
        self.location = location
        self.samples = 0
        self._loss: Any = 0.0
        self._waiting: list[Answers] = []
        self._tally: Tally | None = None

    def add(self, returned: torch.Tensor, samples: int, answers: Answers | None) -> None:
        value = returned.detach()
        self._loss = self._loss + (value.item() if value.is_cpu else value.float()) * samples
        self.samples += samples
        if answers is not None:
            self._waiting.append(answers)
            if not answers.on_device or len(self._waiting) >= MOST_WAITING:
                self._count()

    def _count(self) -> None:
        for answers in self._waiting:
            self._tally = self._tally or Tally(answers.outputs)
            self._tally.add(answers.counted())
        self._waiting = []

    def observations(self, step: int, split: Split, comparable: bool) -> Iterable[Observation]:
        self._count()
        metrics = {}
        loss = scalar(self._loss)
        if comparable and loss is not None:
            metrics["loss"] = loss / self.samples
        found = [] if self._tally is None else list(self._tally.predictions(step, split, self.location))
        if found:
            metrics["accuracy"] = found[0].right / found[0].samples
        if metrics:
            yield Evaluation(step, split, metrics)
        yield from found


class Validation(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[tuple[Kind, torch.Tensor]] = Trail()
        self._kind: Kind | None = None  # of the training's loss
        self._comparable = True  # the loss function alone is what training makes small
        self._several = False
        self._looks = 0
        self._notes: list[Note] = []
        self._evaluating = False  # a forward of a validation waits for its loss
        self._sums: dict[Split, Sums] = {}
        self._source: Any = None  # of the batch that came last, until a forward takes it
        self._split: Split | None = None
        self._trained_on: dict[int, bool] = {}  # data set → whether training draws from all of it
        self._trained_with: weakref.ref[torch.Tensor] | None = None  # what a training without a loader was given

    def batch(self, iterator: Any, batch: Any) -> None:
        self._source = iterator

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        source, self._source = self._source, None
        if torch.is_grad_enabled():
            self._evaluating = False
            if self._sums:
                self._end()
            if source is not None and id(source._dataset) not in self._trained_on:
                self._trained_on[id(source._dataset)] = _draws_from_all(source)
            if source is None and self.loop.looking:
                self._trained_with = _first(args, kwargs)
            return
        self._evaluating = not self.loop.model.training
        self._split = self._split_of(source, args, kwargs)

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if not is_tensor(returned):
            return
        if returned.requires_grad:
            if self._looks < LEARNING and self.loop.looking:
                self._trail.note(returned, (_kind(name, bind_arguments(name, args, kwargs)), returned.detach()))
        elif self._evaluating and self._kind is not None and self._split is not None:
            self._validated(name, bind_arguments(name, args, kwargs), returned)

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        used = self._trail.used()
        if not used:
            return
        kind, returned = used[0]
        self._several |= len(used) > 1 or (self._kind is not None and self._kind != kind)
        self._kind = kind
        value, given = scalar(self.loop.loss), scalar(returned)
        # Beside a penalty, or as a part of several, it is not what the steps' loss is.
        self._comparable &= value is not None and given is not None and abs(value - given) <= WHOLE * abs(given)

    def take(self) -> Sequence[Note]:
        self._trail.clear()
        self._looks += self.loop.looking
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        self._end()

    def _validated(self, name: str, bound: Mapping[str, Any], returned: torch.Tensor) -> None:
        target = bound.get("target")
        if self._several or returned.dim() or not is_tensor(target) or _kind(name, bound) != self._kind:
            return
        self._evaluating = False
        assert self._split is not None
        if self._split not in self._sums:
            self._sums[self._split] = Sums(users_line(sys._getframe()))
        samples = target.shape[0] if target.dim() else 1
        self._sums[self._split].add(returned, samples, answers_of(name, bound))

    def _end(self) -> None:
        step = self.loop.steps
        comparable = self._comparable and self._kind is not None and self._kind[1] == "mean"
        for split, sums in self._sums.items():
            self._notes.append(partial(sums.observations, step, split, comparable))
        self._sums = {}

    def _split_of(self, source: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Split | None:
        """None: it cannot be told."""
        if source is None:
            given, trained_with = _first(args, kwargs), self._trained_with
            same = given is not None and trained_with is not None and given() is trained_with()
            return Split.TRAIN if same else Split.VALIDATION
        if id(source._dataset) not in self._trained_on:
            return Split.VALIDATION
        # Two samplers may draw from two parts of one set.
        return Split.TRAIN if self._trained_on[id(source._dataset)] or _draws_from_all(source) else None


def _kind(name: str, bound: Mapping[str, Any]) -> Kind:
    settings = tuple(bound.get(key, DEFAULTS.get(key)) for key in SETTINGS)
    return (name, *settings, *(is_tensor(bound.get(key)) for key in ("weight", "pos_weight")))


def _draws_from_all(iterator: Any) -> bool:
    sampler = getattr(getattr(iterator, "_index_sampler", None), "sampler", None)
    return isinstance(sampler, RandomSampler | SequentialSampler)


def _first(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "weakref.ref[torch.Tensor] | None":
    first = next((t for _, t in leaves((args, kwargs), is_tensor)), None)
    return None if first is None else weakref.ref(first)
