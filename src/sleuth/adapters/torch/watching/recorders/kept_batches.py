"""A choice of what passes by, training and validation kept apart, for the examination after the end.

Whatever brought the batches: they are taken at the door of the model, and their targets where the loss is called.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch
from torch import distributed

from sleuth.adapters.torch.watching.batch_sources import COPIES, Source, Sources
from sleuth.adapters.torch.watching.first_loss import FirstBatch
from sleuth.adapters.torch.watching.initial_weights import weights_of
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.loss_tape import TapeLoss, tape_loss
from sleuth.adapters.torch.watching.optimiser_recipe import Recipe, recipe_of
from sleuth.adapters.torch.watching.recomputed_loss import LossAgain, loss_again, target_of
from sleuth.adapters.torch.watching.recorders.asked_inputs import Asking
from sleuth.adapters.torch.watching.recorders.scenes import Scenes
from sleuth.adapters.torch.watching.reservoir import HostReservoir, inputs_of, parts_of, rows_of
from sleuth.adapters.torch.watching.sample_indices import tensors_of
from sleuth.adapters.torch.watching.step_memory import Forward, Memory
from sleuth.core.contract.kept import Group, Passed

MOST_BYTES = 32 << 20
MOST_EPOCHS = 64


class Draft(NamedTuple):
    """While a backward runs."""

    forward: Forward
    target: torch.Tensor | None
    positions: np.ndarray | None
    source: Source


class KeptBatches(LoopRecorder):
    def __init__(self, loop: Loop, scenes: Scenes) -> None:
        super().__init__(loop)
        self._scenes = scenes
        self._sources = Sources()
        self._asking = Asking(self._sources)
        self.train = HostReservoir(MOST_BYTES)
        self.loss_again: LossAgain | TapeLoss | None = None
        self.never_again = ""  # why the loss cannot be called again
        self._takes_beside = False  # the target is what the loader gives, not what the loss function is given in the end
        self.first: FirstBatch | None = None
        self.first_is_whole = False  # and not its first rows only
        self.called_once = True  # a batch
        self.alone = True  # no other process takes part in the training
        self.available: int | None = None  # samples in the data set that training draws from
        self.fed_anew = True
        self.first_positions: list[tuple[int, ...]] = []
        self.start = weights_of(loop.model)
        self._was_called = False
        self.recipes: list[Recipe] = []  # of the optimisers
        self._source: Source | None = None  # of what the model was called with since the last backward
        self._draft: Draft | None = None
        self._before: ref[torch.Tensor] | None = None  # what the step before was given, and where it lay
        self._address = 0

    def batch(self, iterator: Any, batch: Any) -> None:
        self._sources.gave(iterator, batch, self.loop.steps)

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not torch.is_grad_enabled():
            if not self.loop.model.training:
                self._asking.forward(args, kwargs, self.loop.steps)
            return
        if not self._was_called and self.loop.steps:  # a watch that began within a step, whose batch nobody saw
            self.start = weights_of(self.loop.model)
        self._was_called = True
        if self._source is None:
            given = [*tensors_of(args), *tensors_of(kwargs)]
            self._source = self._sources.of(given, self.loop.steps) if given else COPIES

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if not torch.is_grad_enabled():
            self._asking.loss(name, args, kwargs)

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        source, self._source = self._source or COPIES, None
        memory = self._scenes.memory
        if not memory.forwards or memory.cut:
            return
        self.called_once &= len(memory.forwards) == 1 and not isinstance(self.loop.model, Several)
        self.alone &= not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1)
        first = memory.forwards[0]
        given = list(first.inputs)
        self._note_loss(memory, self._sources.beside(given) if given else None)
        if not given or given[0].requires_grad or not first.unchanged:
            return
        target = None if self._takes_beside else _target_in(memory)
        samples = self._scenes.samples_in(memory)
        positions = None if samples is None or not samples.certain else np.asarray(samples.indices)
        self._draft = Draft(first, self._sources.beside(given) if target is None else target, positions, source)

    def backward_failed(self, loss: torch.Tensor) -> None:
        self._draft = None

    def backward_end(self, loss: torch.Tensor) -> None:
        draft, self._draft = self._draft, None
        if draft is None:
            return
        if not self.recipes:
            self.recipes = [recipe_of(o, self.loop.model) for o in self.loop.optimisers if o is not None]
        source = draft.source
        self._asking.trained_on.add(source.key)
        self._note_memory(draft.forward.inputs[0], source)
        self.available = self.available if source.length is None else max(self.available or 0, source.length)
        if draft.positions is not None and source.begins and len(self.first_positions) < MOST_EPOCHS:
            self.first_positions.append(tuple(draft.positions.tolist()))
        place = self.train.wants()
        if place is not None:
            self._keep(place, draft)

    def _keep(self, place: int, draft: Draft) -> None:
        inputs = inputs_of(draft.forward.args, draft.forward.kwargs)
        parts = parts_of(inputs, draft.target, first=place == 0)
        if parts is None:
            return
        positions = None if draft.positions is None else draft.positions[: rows_of(parts)]
        self.train.note_devices((inputs, draft.target))
        self.train.keep(place, Passed(self.loop.steps, parts, draft.source.epoch, positions))
        if place == 0:
            self.first = FirstBatch.of(draft.forward, self.loop.loss, self.loop.model)
            self.first_is_whole = rows_of(parts) == draft.forward.size

    def _note_memory(self, given: torch.Tensor, source: Source) -> None:
        """Is a step given the very arrays of the one before? Then whoever wrote the loop may have no others."""
        before, self._before = self._before, ref(given)
        address, self._address = self._address, given.data_ptr()
        if before is None or source.fresh:
            return
        # A view of an array is made anew at each step, and so is what shares memory with NumPy; a copy may come to lie where
        # the last one was. What is brought to another device each time may be the same array again.
        shared = given._is_view() or not given.untyped_storage().resizable() or before() is given
        self.fed_anew &= given.is_cpu and not (shared and address == self._address)

    def _note_loss(self, memory: Memory, beside: torch.Tensor | None) -> None:
        if self.never_again or self.loss_again is not None:
            return
        found = None
        if isinstance(self.loop.model, Several) or len(memory.forwards) != 1:
            self.never_again = "the model is called several times before each backward"
        elif type(memory.root) is not int:
            self.never_again = "what goes backward is not what a loss function of torch returned"
        else:
            heard = memory.losses[memory.root]
            outputs = dict(memory.forwards[0].outputs)
            whole = next((t for r in outputs.values() if (t := r()) is not None), None)
            found = loss_again(heard, torch.empty(0) if whole is None else whole)
            if found is None:
                self.never_again = "the loss is given something that was computed from the model's output"
        self.loss_again = None if found is None else found[0]
        if found is None and len(memory.forwards) == 1 and not isinstance(self.loop.model, Several):
            self._note_tape(memory, beside)

    def _note_tape(self, memory: Memory, beside: torch.Tensor | None) -> None:
        """What the user's lines compute, where it is more than one call of a loss function."""
        size, heard = memory.forwards[0].size, _target_in(memory)
        if self._scenes.tapes and size and not self.loop.scaled:
            found = tape_loss(self._scenes.tapes[0], size, [t for t in (heard, beside) if t is not None])
            if isinstance(found, str):
                self.never_again = found
            else:
                self.loss_again, self.never_again = found[0], ""
                self._takes_beside = found[1] is not heard

    def close(self) -> None:
        self._draft, self._source, self._before = None, None, None

    def groups(self) -> list[Group]:
        return self._asking.groups()


def _target_in(memory: Memory) -> torch.Tensor | None:
    heard = memory.losses[memory.root] if type(memory.root) is int else memory.losses[0] if len(memory.losses) == 1 else None
    target = None if heard is None else target_of(heard)
    return None if target is None or target.requires_grad else target
