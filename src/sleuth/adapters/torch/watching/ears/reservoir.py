"""A choice of what passes by, training and validation kept apart, for the examination after the end.

Whatever brought the batches: they are taken at the door of the model, and their targets where the loss is called.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from sleuth.adapters.torch.listening import is_tensor
from sleuth.adapters.torch.loss_calls import bind_arguments
from sleuth.adapters.torch.watching.basin import Basin, copied
from sleuth.adapters.torch.watching.ear import Ear, Loop
from sleuth.adapters.torch.watching.ears.scenes import Scenes
from sleuth.adapters.torch.watching.loss_again import LossAgain, loss_again, target_of
from sleuth.adapters.torch.watching.recipe import Recipe, recipe_of
from sleuth.adapters.torch.watching.several import Several
from sleuth.adapters.torch.watching.step_memory import Forward, Memory
from sleuth.core.kept import Group, Passed
from sleuth.core.subject import Parts
from sleuth.core.tree import leaves

# Sources of validation data: more are not told apart.
MOST_GROUPS = 4
MOST_EPOCHS = 64
# The model as it was at the first step is kept up to this size.
MOST_WEIGHT_BYTES = 32 << 20


class Pass:
    """What the model is shown without a graph, from one source."""

    def __init__(self, of_its_own: bool) -> None:
        self.of_its_own = of_its_own
        self.basin = Basin()
        self.samples = 0
        self._counted = 0
        self._step = -1

    def count(self, step: int, samples: int) -> None:
        """Samples between two steps of the training are those of one pass."""
        self._counted = self._counted + samples if step == self._step else samples
        self._step = step
        self.samples = max(self.samples, self._counted)


class Reservoir(Ear):
    def __init__(self, loop: Loop, scenes: Scenes) -> None:
        super().__init__(loop)
        self._scenes = scenes
        self.train = Basin()
        self.loss_again: LossAgain | None = None
        self.never_again = ""  # why the loss cannot be called again
        self.called_once = True  # a batch
        self.available: int | None = None  # samples in the data set that training draws from
        self.first_positions: list[tuple[int, ...]] = []
        self._passes: dict[Any, Pass] = {}
        self._trained_on: set[Any] = set()
        self._epochs: dict[int, int] = {}
        self._source: Any = None  # of the batch that came last
        self._batch: list[ref[torch.Tensor]] = []
        self._draft: tuple[Forward, torch.Tensor | None, np.ndarray | None] | None = None
        self._asked: tuple[Pass, Any, int, list[torch.Tensor]] | None = None  # a validation's call that waits for its target
        self.start = _weights(loop.model)
        self.recipes: list[Recipe] = []  # of the optimisers

    # Where batches come from.

    def batch(self, iterator: Any, batch: Any) -> None:
        self._source = ref(iterator)
        self._batch = [ref(t) for _, t in leaves(batch, is_tensor)]
        if iterator._num_yielded <= 1:
            self._epochs[id(iterator._dataset)] = self._epochs.get(id(iterator._dataset), -1) + 1

    def _key(self, given: torch.Tensor | None) -> tuple[Any, bool]:
        """Of the source, and whether it is one that can be told from others."""
        source = None if self._source is None else self._source()
        if source is not None:
            return ("loader", id(source._dataset)), True
        if given is None:
            return "other", False
        # Rows of a larger array, or the whole of it again and again; copies of rows may be of anything.
        part = given.untyped_storage().nbytes() > given.nbytes or given.data_ptr() in self._whole(given)
        return ("array", given.untyped_storage().data_ptr()) if part else "copies", part

    def _available(self, given: torch.Tensor) -> int | None:
        source = None if self._source is None else self._source()
        try:
            if source is not None:
                return len(source._dataset)
        except TypeError:  # a stream
            return None
        rows = given[:1].nbytes if given.dim() else 0
        return given.untyped_storage().nbytes() // rows if rows and given.untyped_storage().nbytes() > given.nbytes else None

    def _whole(self, given: torch.Tensor) -> set[int]:
        return {given.data_ptr()} if ("array", given.untyped_storage().data_ptr()) in self._passes else set()

    # Training.

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._ask_no_more()
        self._draft = None
        memory = self._scenes.memory
        if not memory.forwards or memory.cut:
            return
        first = memory.forwards[0]
        given = first.inputs
        self.called_once &= len(memory.forwards) == 1 and not isinstance(self.loop.model, Several)
        if not given or given[0].requires_grad or not first.unchanged:
            return
        heard = memory.losses[memory.root] if type(memory.root) is int else memory.losses[0] if len(memory.losses) == 1 else None
        target = None if heard is None else target_of(heard)
        if target is not None and target.requires_grad:
            target = None
        samples = self._scenes.samples_in(memory)
        positions = None if samples is None or not samples.certain else np.asarray(samples.indices)
        self._draft = first, self._beside(given) if target is None else target, positions
        self._note_loss(memory)

    def _note_loss(self, memory: Memory) -> None:
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

    def backward_end(self, loss: torch.Tensor) -> None:
        if self._draft is None:
            return
        (forward, target, positions), self._draft = self._draft, None
        if not self.recipes:
            self.recipes = [recipe_of(o, self.loop.model) for o in self.loop.optimisers if o is not None]
        key, told = self._key(forward.inputs[0])
        if self.available is None:
            self.available = self._available(forward.inputs[0])
        if told:
            self._trained_on.add(key)
        epoch = self._epochs.get(key[1]) if told and key[0] == "loader" else None
        if epoch is not None and positions is not None and epoch == len(self.first_positions) < MOST_EPOCHS:
            self.first_positions.append(tuple(positions.tolist()))
        self._source = None
        place = self.train.wants()
        if place is None:
            return
        step, whole = self.loop.steps, place == 0
        self.train.put(place, lambda: _passed(step, _inputs(forward.args, forward.kwargs), target, epoch, positions, whole))

    # Validation.

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._ask_no_more()
        if torch.is_grad_enabled() or self.loop.model.training:
            return
        tensors = [t for _, t in leaves((args, kwargs), is_tensor)]
        key, told = self._key(tensors[0] if tensors else None)
        self._source = None
        if not tensors or not tensors[0].dim() or key in self._trained_on:
            return
        if key not in self._passes and len(self._passes) >= MOST_GROUPS:
            return
        found = self._passes.setdefault(key, Pass(told))
        found.count(self.loop.steps, len(tensors[0]))
        place = found.basin.wants()
        if place is not None:
            self._asked = found, _inputs(args, kwargs), place, tensors

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if self._asked is None or (is_tensor(returned) and returned.requires_grad):
            return
        target = bind_arguments(name, args, kwargs).get("target")
        if is_tensor(target) and target.dim() and target.shape[0] == len(self._asked[3][0]):
            self._keep(target)

    def after_step(self, number: int) -> None:
        self._ask_no_more()

    def _ask_no_more(self) -> None:
        if self._asked is not None:
            self._keep(self._beside(self._asked[3]))

    def _keep(self, target: torch.Tensor | None) -> None:
        assert self._asked is not None
        (found, inputs, place, _), self._asked = self._asked, None
        found.basin.put(place, lambda: _passed(self.loop.steps, inputs, target, None, None, place == 0))

    def _beside(self, given: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """What a loader's batch holds beside the inputs: the target, most likely, where that is one array."""
        tensors = [t for r in self._batch if (t := r()) is not None]
        others = [t for t in tensors if all(t is not mine for mine in given)]
        fits = len(others) == 1 and len(tensors) == len(others) + len(given) and others[0].dim() > 0
        return others[0] if fits and len(others[0]) == len(given[0]) else None

    def resumed(self) -> None:
        self._draft, self._asked, self._batch = None, None, []

    def close(self) -> None:
        self._ask_no_more()
        self._draft, self._source, self._batch = None, None, []

    def groups(self) -> list[Group]:
        found = [p for key, p in self._passes.items() if p.basin.batches and key not in self._trained_on]
        return [Group(p.basin.batches, p.samples, p.of_its_own) for p in found]


def _inputs(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if kwargs:
        return dict(kwargs) if not args else (*args, dict(kwargs))
    return args[0] if len(args) == 1 else args


def _passed(
    step: int, inputs: Any, target: torch.Tensor | None, epoch: int | None, positions: np.ndarray | None, whole: bool
) -> Passed:
    given, wanted = copied((inputs, target), whole=whole)
    size = next((len(t) for _, t in leaves(given, is_tensor) if t.dim()), 0)
    return Passed(step, Parts(given, wanted, (given, wanted)), epoch, None if positions is None else positions[:size])


def _weights(model: nn.Module) -> dict[str, torch.Tensor] | None:
    """None: too large to be kept, or not made yet."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    if any(is_lazy(t) for t in tensors.values()):
        return None
    if sum(t.nbytes for t in tensors.values()) > MOST_WEIGHT_BYTES:
        return None
    return {name: t.detach().clone() for name, t in tensors.items()}
