"""Validation, where the loop does some: forwards in evaluation mode or without gradients, put to the loss of the training, of
which no backward follows; from one on.

What the model says on other occasions without gradients (a teacher, a target network, samples) meets no such loss. Where one of
the two is missing, the mode or the absence of gradients, the data must be known to be others: by their loader, or by a word.
"""

import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils.data import RandomSampler, SequentialSampler

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.loss_calls import bind_arguments, scalar
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.recorders.loss_terms import Scale, Terms, terms_of
from sleuth.adapters.torch.watching.recorders.losses import Trail
from sleuth.adapters.torch.watching.recorders.predictions import Answers, Tally, answers_of
from sleuth.adapters.torch.watching.split_words import SplitWords, Variable, Word, call_path
from sleuth.core.location import Location
from sleuth.core.observation import Evaluation, Observation, Phase, Split
from sleuth.core.observation.calls import WITHOUT_GRAPH, CallKind
from sleuth.core.runtime.tree import leaves

# The training's own loss is learned in so many looks.
LEARNING = 3
# Answers that wait on a device; then they are counted.
MOST_WAITING = 256
# What else makes a loss another one than its name says.
SETTINGS = ("label_smoothing", "ignore_index", "beta", "delta", "log_target", "margin")
DEFAULTS = {"label_smoothing": 0.0, "ignore_index": -100}

Kind = tuple[Any, ...]
Reference = weakref.ref[torch.Tensor] | None


class Sums:
    """One pass over some data. On a device the sums stay there until they are asked for."""

    def __init__(self, location: Location | None, kind: CallKind, *, nameless: bool) -> None:
        self.location, self.kind, self.nameless = location, kind, nameless
        self.calls = 0
        self._terms: Terms | None = Terms(0.0, 0.0, 0)
        self._waiting: list[Answers] = []
        self._tally: Tally | None = None

    def add(self, given: Terms, answers: Answers | None) -> None:
        self.calls += 1
        before = self._terms
        if before is None or before.total is None or given.total is None:
            self._terms = None
        else:
            self._terms = Terms(before.total + given.total, before.terms + given.terms, before.samples + given.samples)
        if answers is not None:
            self._waiting.append(answers)
            if not answers.on_device or len(self._waiting) >= MOST_WAITING:
                self._count()

    def _count(self) -> None:
        for answers in self._waiting:
            self._tally = self._tally or Tally(answers.outputs)
            self._tally.add(answers.counted())
        self._waiting = []

    def observations(self, step: int, split: Split, scale: Scale | None) -> Iterable[Observation]:
        self._count()
        metrics = {}
        loss = None if scale is None or self._terms is None else self._terms.scaled(scale)
        if loss is not None:
            metrics["loss"] = loss
        found = [] if self._tally is None else list(self._tally.predictions(step, split, self.location))
        if found:
            metrics["accuracy"] = found[0].right / found[0].samples
        if metrics:
            yield Evaluation(step, split, metrics)
        yield from found


class Asked(NamedTuple):
    """The model was called, and its loss is yet to come."""

    split: Split | None  # None: the data does not tell
    sure: bool  # the data comes from a place of its own
    kind: CallKind


class Validation(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[tuple[Kind, Terms | None]] = Trail()
        self._kind: Kind | None = None  # of the training's loss
        self._scale: Scale | None = None
        self._comparable = True  # the loss function alone is what training makes small
        self._several = False
        self._looks = 0
        self._notes: list[Note] = []
        self._asked: Asked | None = None
        self._with_graph: tuple[Any, ...] | None = None  # a loss in evaluation mode, until it turns out that nobody trains on it
        self._words = SplitWords()
        self._sums: dict[tuple[Split, Variable | None], Sums] = {}
        self._paths: set[tuple[int, ...]] = set()  # by which calls nameless data came, in this pass
        self._source: Any = None  # of the batch that came last, until a forward takes it
        self._trained_on: dict[int, bool] = {}  # data set → whether training draws from all of it
        self._drawn: dict[int, bool] = {}  # the same, of the calls with a graph that no backward has used yet
        self._drawn_last: dict[int, bool] = {}  # in evaluation mode: unless a backward follows at once, it is a validation's
        self._given: Reference = None  # to the last of them
        self._trained_with: Reference = None  # what the training was given last

    def batch(self, iterator: Any, batch: Any) -> None:
        self._source = iterator

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._keep_with_graph()
        source, self._source = self._source, None
        training = self.loop.model.training
        self._drawn_last = {}
        self._asked, graph, first = None, torch.is_grad_enabled(), _first(args, kwargs)
        if graph:
            self._given = first
            if source is not None:
                (self._drawn if training else self._drawn_last)[id(source._dataset)] = _draws_from_all(source)
        if self._kind is not None and not (graph and training):
            split, sure = self._split_of(source, first)
            kind = CallKind.FORWARD_IN_EVAL if graph else CallKind.VALIDATE_IN_TRAIN if training else CallKind.VALIDATE
            self._asked = Asked(split, sure, kind)

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if not is_tensor(returned):
            return
        learning = returned.requires_grad and self._looks < LEARNING and self.loop.looking
        if learning or self._asked is not None:
            bound = bind_arguments(name, args, kwargs)
            kind = _kind(name, bound)
            if learning:
                self._trail.note(returned, (kind, terms_of(name, bound, returned)))
            if self._asked is not None and kind == self._kind and not self._several:
                self._validated(name, bound, returned, self._asked)

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._with_graph = self._asked = None
        if self._sums:
            self._end()
        self._trained_with = self._given
        self._trained_on = {**self._drawn, **self._drawn_last, **self._trained_on}
        self._drawn, self._drawn_last = {}, {}
        if self._looks < LEARNING and self.loop.looking:
            self._words.trained(sys._getframe())
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        used = self._trail.used()
        if not used:
            return
        kind, terms = used[0]
        self._several |= len(used) > 1 or (self._kind is not None and self._kind != kind)
        self._kind = kind
        value = scalar(self.loop.loss)
        # Beside a penalty, or as a part of several, it is not what the steps' loss is.
        scale = None if value is None or terms is None else terms.scale_of(value)
        self._comparable &= scale is not None and self._scale in (None, scale)
        self._scale = scale

    def take(self) -> Sequence[Note]:
        self._trail.clear()
        self._looks += self.loop.looking
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        self._keep_with_graph()
        self._end(last=True)

    def _validated(self, name: str, bound: Mapping[str, Any], returned: torch.Tensor, asked: Asked) -> None:
        self._asked = None
        if returned.requires_grad != (asked.kind == CallKind.FORWARD_IN_EVAL):
            return  # what was asked without gradients is the target of a loss that is trained on
        frame = sys._getframe()
        word = None if asked.sure else self._words.heard(frame)
        said = asked.split if asked.sure or word is None else word.split
        if asked.kind != CallKind.VALIDATE and not (said is Split.VALIDATION and (asked.sure or word)):
            return  # anything may be asked so
        terms = terms_of(name, bound, returned)
        if terms is None or (asked.split is None and word is None):
            return
        if not asked.sure and word is None and asked.split is Split.VALIDATION:
            self._paths.add(call_path(frame))
        found = asked, word, terms, answers_of(name, bound), users_line(frame)
        if returned.requires_grad:
            self._with_graph = found
        else:
            self._add(*found)

    def _keep_with_graph(self) -> None:
        found, self._with_graph = self._with_graph, None
        if found is not None:
            self._add(*found)

    def _add(self, asked: Asked, word: Word | None, terms: Terms, answers: Answers | None, line: Location | None) -> None:
        if word is None or asked.split is Split.TRAIN:
            assert asked.split is not None
            key: tuple[Split, Variable | None] = asked.split, None
        else:
            key = word.split, word.variable
        if key not in self._sums:
            self._sums[key] = Sums(line, asked.kind, nameless=word is None and not asked.sure)
        self._sums[key].add(terms, answers)

    def _end(self, *, last: bool = False) -> None:
        step = self.loop.steps
        scale = self._scale if self._comparable else None
        calls = sum(sums.calls for sums in self._sums.values())
        for (split, variable), sums in self._sums.items():
            # A word that never changes may be a setting; and of two evaluations without a name one may be of the training data.
            sure = split is Split.VALIDATION or variable is None or self._words.tells(variable)
            if not sure or (sums.nameless and split is Split.VALIDATION and len(self._paths) > 1):
                continue
            self._notes.append(partial(sums.observations, step, split, scale))
            # In a row they are noticed anyway, see Heard.phases; one alone may be an agent that acts, if it met no loss.
            if calls == 1 and sums.kind in WITHOUT_GRAPH and split is Split.VALIDATION:
                self._notes.append(Phase(step, sums.kind, 1, optimiser=self.loop.stepping, last=last))
        self._sums, self._paths = {}, set()

    def _split_of(self, source: Any, given: Reference) -> tuple[Split | None, bool]:
        """None: it cannot be told. True: it comes from a place of its own."""
        if given is not None and self._trained_with is not None and given() is self._trained_with():
            return Split.TRAIN, True
        if source is None:
            return Split.VALIDATION, False
        if id(source._dataset) not in self._trained_on:
            return Split.VALIDATION, True
        # Two samplers may draw from two parts of one set.
        return (Split.TRAIN if self._trained_on[id(source._dataset)] or _draws_from_all(source) else None), False


def _kind(name: str, bound: Mapping[str, Any]) -> Kind:
    settings = tuple(bound.get(key, DEFAULTS.get(key)) for key in SETTINGS)
    return (name, *settings, *(is_tensor(bound.get(key)) for key in ("weight", "pos_weight")))


def _draws_from_all(iterator: Any) -> bool:
    sampler = getattr(getattr(iterator, "_index_sampler", None), "sampler", None)
    return isinstance(sampler, RandomSampler | SequentialSampler)


def _first(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Reference:
    first = next((t for _, t in leaves((args, kwargs), is_tensor)), None)
    return None if first is None else weakref.ref(first)
