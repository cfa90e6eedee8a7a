"""What an examination after the end needs of a tree: first weights, batches that passed by, and what was done with them."""

import copy
from collections import deque
from typing import Any

import mlx.core as mx
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.trees.split_model_loss import Parted, TreeModel
from sleuth.adapters.mlx.trees.tree import Named, Tree
from sleuth.adapters.mlx.watching.kept_training import ROUNDING, SMALL, UNHEARD, only_size, value_of
from sleuth.core.contract.kept import Group, Kept, Passed
from sleuth.core.subject import Parts, Subject

ELSE = "something else goes into it"
Proof = tuple[int, dict[str, mx.array], float]


class TreeKeeper:
    def __init__(self) -> None:
        self.parted: Parted | None = None
        self._start: dict[str, mx.array] | None = None
        # Steps, their weights, and the losses that were seen: the first, and the last ones, whose weights are others. What is
        # made of weights behind our back would be taken for a constant, and the first proves nothing of that.
        self._first: Proof | None = None
        self._latest: deque[Proof] = deque(maxlen=4)
        self._recipe: tuple[Optimizer, dict[str, Any]] | None = None
        self._rivals = False

    def start(self, weights: Named) -> None:
        if self._start is None and sum(a.size for a in weights.values()) <= SMALL:
            self._start = {name: mx.array(a) for name, a in weights.items()}

    def optimiser(self, optimiser: Optimizer) -> None:
        """That steps the tree; as it is at its first step that was heard."""
        if self._recipe is None:
            self._recipe = (copy.copy(optimiser), state.copied(vars(optimiser)))
        else:
            self._rivals |= type(optimiser) is not type(self._recipe[0])

    def prove(self, parted: Parted, step: int, weights: Named, value: float) -> None:
        self.parted, self._first = parted, (step, dict(weights), value)

    def again(self, step: int, weights: Named, value: float) -> None:
        """A later step that was looked at."""
        if self.parted is not None and self.parted.loss is not None:
            self._latest.append((step, {name: mx.array(a) for name, a in weights.items()}, value))

    def kept(self, tree: Tree, train: list[Passed], groups: list[Group]) -> Kept | None:
        if not train or self._start is None:
            return None
        parted = self.parted
        if parted is None or parted.program is None or parted.loss is None:
            why = UNHEARD if parted is None else parted.obstacle
            return Kept(Subject(tree, None), train, groups, forbidden=why)
        model = TreeModel(tree.as_given(), tree.code, parted.program)
        loss = copy.copy(parted.loss)
        loss.model = model
        reason = self._obstacle(model, loss, {p.step: p.parts for p in train})
        if reason:
            return Kept(Subject(tree, None), train, groups, fed_anew=True, forbidden=reason)
        model.hold(self._start)
        size = parted.batch_size or only_size(model, loss, train[0].parts)
        subject = Subject(model, None, loss, self._made_again())
        return Kept(subject, train, groups, fed_anew=True, at_start=True, batch_size=size)

    def _obstacle(self, model: TreeModel, loss: Any, parts: dict[int, Parts]) -> str:
        """Why experiments with what was put together would tell of another training."""
        proofs = [p for p in (self._first, *self._latest) if p is not None and p[0] in parts]
        if len(proofs) < 2:
            return UNHEARD
        try:
            for step, weights, value in proofs:
                model.hold(weights)
                again = value_of(model, loss, parts[step])
                if not abs(again - value) <= ROUNDING * abs(value):
                    return f"computed again, the loss of step {step} is {again:.6g}, and it was {value:.6g}: {ELSE}"
        except Exception as error:
            return f"the loss of a batch could not be computed again: {type(error).__name__}: {error}"
        return ""

    def _made_again(self) -> Optimizer | None:
        """Without what it remembers of the first steps."""
        if self._recipe is None or self._rivals:
            return None
        again, recipe = copy.copy(self._recipe[0]), state.copied(self._recipe[1])
        vars(again).clear()
        vars(again).update(recipe)
        again._state = {key: value for key, value in again._state.items() if key == "learning_rate"}
        again._state["step"] = mx.array(0, mx.uint64)
        again._initialized = False
        return again
