"""The first batches as the model is given them, with what its loss compares them with: as an examination reads its data.

Only where it is plain what the data is: one forward a backward, whose first argument is an array that nothing learned has made.
Validation batches stay out: they come in order, and the first of them need not resemble the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from sleuth.adapters.common.first_batches import MOST_BATCHES, FirstBatches
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.loss_calls import bind_arguments
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.recorders.losses import Trail, sampled
from sleuth.core.observation import ArrayFacts, Batch, Split
from sleuth.core.reading.batch_facts import contents, describe_batch
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts

# The first steps, then one whenever half as many steps again have gone by.
FIRST = 8
PATIENCE = 2


@dataclass(frozen=True)
class Draft:
    """Copies of at most `MEASURED_VALUES` numbers each, every `stride`th sample."""

    step: int
    given: torch.Tensor
    shape: tuple[int, ...]
    wanted: torch.Tensor | None = None
    wanted_shape: tuple[int, ...] = ()


class Batches(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[torch.Tensor] = Trail()
        self._draft: Draft | None = None
        self._forwards = 0
        self._drafts = 0
        self._next = 0
        self._notes: list[Note] = []
        self._first_batches = FirstBatches()
        self._looks_up = any(isinstance(m, torch.nn.Embedding | torch.nn.EmbeddingBag) for m in loop.model.modules())

    @property
    def _listening(self) -> bool:
        return self.loop.steps >= self._next and not self._first_batches.told and self._drafts < MOST_BATCHES

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not torch.is_grad_enabled() or not self._listening:
            return
        self._forwards += 1
        given = self._first(args, kwargs) if self._forwards == 1 else None
        self._draft = None if given is None else Draft(self.loop.steps, sampled(given).clone(), tuple(given.shape))

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if self._draft is None or not is_tensor(returned) or not returned.requires_grad:
            return
        target = bind_arguments(name, args, kwargs).get("target")
        if is_tensor(target) and not target.requires_grad and target.dim() and target.shape[0] == self._draft.shape[0]:
            self._trail.note(returned, target.detach())

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        draft, used = self._draft, self._trail.used()
        if draft is not None:
            if len(used) == 1:
                draft = replace(draft, wanted=sampled(used[0]).clone(), wanted_shape=tuple(used[0].shape))
            self._notes.append(partial(self._describe, draft))
            self._drafts += 1
        self._draft, self._forwards = None, 0
        self._trail.clear()

    def take(self) -> Sequence[Note]:
        if self._notes and self.loop.steps >= FIRST - 1:
            self._next = self.loop.steps + 1 + self.loop.steps // PATIENCE
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        # A forward that failed has seen its batch all the same.
        if self._draft is not None and not self._drafts:
            self._notes.append(partial(self._describe, self._draft))
        self._draft = None
        self._trail.clear()
        self._notes.append(self._first_batches.tell)

    def _first(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
        tensors = [t for _, t in leaves((args, kwargs), is_tensor)]
        first = next(iter((*args, *kwargs.values())), None)
        # A list of tensors is a list of samples, not a batch of them.
        if not tensors or not (first is tensors[0] or isinstance(first, Mapping)):
            return None
        given = tensors[0]
        numbers = given.is_floating_point() or given.dtype is torch.uint8 or self._looks_up or len(tensors) == 1
        return given if numbers and given.dim() > 1 and not given.requires_grad and not given.is_complex() else None

    def _describe(self, draft: Draft) -> Iterable[Batch]:
        """Off the training thread."""
        # The adapter itself opens watches.
        from sleuth.adapters.torch.adapter import TorchAdapter

        adapter = TorchAdapter()
        parts = Parts(draft.given, draft.wanted, draft.given)
        facts = describe_batch(contents(parts, adapter), Split.TRAIN, draft.step, adapter)
        stride = -(-draft.shape[0] // max(len(draft.given), 1))
        whole = replace(
            facts,
            size=draft.shape[0],
            inputs=tuple(_whole(f, draft.shape) for f in facts.inputs),
            target=None if facts.target is None else _whole(facts.target, draft.wanted_shape),
            bad_inputs=tuple(i * stride for i in facts.bad_inputs),
        )
        return self._first_batches.add(whole)


def _whole(facts: ArrayFacts, shape: tuple[int, ...]) -> ArrayFacts:
    """Its values may be those of a part."""
    return replace(facts, shape=shape)
