"""Which of the operations of a step is to blame for what is not finite. NaN and Inf are kept apart."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from sleuth.adapters.torch.origin import FILLS
from sleuth.adapters.torch.watching.origin.witness import Deed, State, Witness

# They hand values on as they are.
PASSING = {
    "__getitem__", "view", "reshape", "flatten", "T", "t", "mT", "transpose", "permute", "unsqueeze", "squeeze", "clone",
    "contiguous", "to", "float", "double", "expand", "expand_as", "detach", "data", "type", "movedim", "unflatten", "narrow",
    "chunk", "split", "index_select", "gather", "cat", "stack", "flip", "roll", "masked_select",
}  # fmt: skip
# A product of many factors below one ends at zero: what stumbles over the zero is not to blame.
PRODUCTS = {"cumprod", "prod"}
# They choose between values that have been computed: the ones not taken still take part in the backward.
CHOOSING = {"where", "nan_to_num", "masked_fill", "masked_select", "__setitem__"}
OVER_ROWS = {"softmax", "log_softmax", "logsumexp", "multi_head_attention_forward", "scaled_dot_product_attention"}
# Whose second operand is the one that breaks it.
DIVIDING = {"div", "remainder", "fmod", "floor_divide", "addcdiv"}
DEEP = 6


@dataclass(frozen=True)
class Verdict:
    """`deed` is to blame; or else `leaf`: a tensor that came in like that."""

    deed: Deed | None = None
    leaf: State | None = None
    taken_by: Deed | None = None  # what stumbled over the zero that `deed` made
    unused: bool = False  # backward: what it made was not taken by a later choice
    made: tuple[torch.Tensor, ...] = ()  # the values or gradients that are not finite


class Case:
    """The deeds of one step, and who made what from what."""

    def __init__(self, deeds: list[Deed]) -> None:
        self.deeds = deeds

    def forward(self, tensors: Iterable[torch.Tensor]) -> Verdict | None:
        """Who is to blame for what is not finite in these."""
        for tensor in tensors:
            maker = self._maker(id(tensor), _storage(tensor), len(self.deeds))
            if maker is None:
                continue
            state = next((s for s in maker.made if s.key == id(tensor)), None)
            if state is not None and state.bad:
                return self._blame(maker, state)
        return None

    def hidden(self, deed: Deed) -> Verdict | None:
        """Who made the NaN that this deed was given; a later choice kept it out of the loss, but not out of the gradient."""
        state = next((s for s in deed.given if s.nans), None)
        if state is None:
            return None
        maker = self._maker(state.key, state.storage, deed.number)
        if maker is None or not any(s.nans for s in maker.made):
            return Verdict(leaf=state)
        found = self._blame(maker, next(s for s in maker.made if s.nans))
        return replace(found, unused=found.deed is not None and self.chosen_later(found.deed) is not None)

    def _blame(self, deed: Deed, result: State) -> Verdict:
        while True:
            if deed.name in OVER_ROWS and result.nans and not any(s.nans or s.positive_infs for s in deed.given):
                return self._guilty(deed, result)
            cause = self._cause(deed, result)
            if cause is None:
                return self._guilty(deed, result)
            maker = self._maker(cause.key, cause.storage, deed.number)
            if maker is None or not any(s.bad for s in maker.made):
                # A mask that is given as it is: what makes NaN of it, or hands it on to the loss, is to blame.
                return self._guilty(deed, result) if not cause.nans and result.nans else Verdict(leaf=cause)
            if maker.name in FILLS and not cause.nans and result.nans and self._cause_of_fill(maker) is None:
                return self._guilty(deed, result)
            deed, result = maker, next(s for s in maker.made if s.bad)

    def _cause(self, deed: Deed, result: State) -> State | None:
        """The input that was already bad, NaN before Inf."""
        nans = [s for s in deed.given if s.nans and not (deed.name in ("masked_fill", "__setitem__") and not result.nans)]
        if result.nans and nans:
            return nans[0]
        return next((s for s in deed.given if s.infs), None)

    def _cause_of_fill(self, deed: Deed) -> State | None:
        return next((s for s in deed.given if s.bad), None)

    def _guilty(self, deed: Deed, result: State) -> Verdict:
        tensors = tuple(t for t, s in zip(deed.tensors, deed.made, strict=True) if s.key == result.key)
        product = self.underflow(deed)
        return Verdict(product or deed, taken_by=deed if product is not None else None, made=tensors)

    def underflow(self, deed: Deed) -> Deed | None:
        """The product that made zeros of factors none of which is zero."""
        for state in deed.given:
            if state.zeros:
                for maker in self.makers(deed, state):
                    if maker.name in PRODUCTS and maker.given and not maker.given[0].zeros:
                        return maker
        return None

    def makers(self, deed: Deed, state: State) -> Iterator[Deed]:
        """Who made an input of a deed, and the first input of that, and so on; those that only hand on are passed over."""
        for _ in range(DEEP * 2):
            maker = self._maker(state.key, state.storage, deed.number)
            if maker is None:
                return
            if maker.name not in PASSING:
                yield maker
            if not maker.given:
                return
            deed, state = maker, maker.given[0]

    def relevant(self, deed: Deed) -> State | None:
        """The input that breaks it."""
        floats = [s for s in deed.given if "float" in s.dtype]
        return floats[1] if deed.name in DIVIDING and len(floats) > 1 else next(iter(floats), None)

    def chosen_later(self, deed: Deed) -> Deed | None:
        """A choice that what this deed made takes part in, few steps later."""
        known, storages = {s.key for s in deed.made}, {s.storage for s in deed.made}
        for later in self.deeds[deed.number + 1 :]:
            if any(s.key in known or (s.storage and s.storage in storages) for s in later.given):
                if later.name in CHOOSING:
                    return later
                known |= {s.key for s in later.made}
        return None

    def of_node(self, node: Any) -> Deed | None:
        number = node._sequence_nr()
        return next((d for d in self.deeds if d.first_node <= number < d.last_node), None)

    def _maker(self, key: int, storage: int, before: int) -> Deed | None:
        """Who wrote it last: by its name, or into what it is a part of."""
        for deed in reversed(self.deeds[:before]):
            for state in deed.made:
                if state.key == key:
                    return deed
            if storage and deed.given and _writes(deed) and deed.made[0].storage == storage:
                return deed
        return None


def backward(
    case: Case, loss: torch.Tensor, start: torch.Tensor | None, sources: list[torch.Tensor]
) -> tuple[list[torch.Tensor | None], Verdict | None]:  # fmt: skip
    """The gradients, and the first op whose gradient is bad though it was given a sound one."""
    born: list[tuple[Deed, tuple[torch.Tensor, ...], bool]] = []

    def listen(node: Any) -> Callable[..., None]:
        def hear(given_back: Any, came: Any) -> None:
            if born or any(g is not None and not bool(torch.isfinite(g).all()) for g in came):
                return
            bad = tuple(g for g in given_back if g is not None and not bool(torch.isfinite(g).all()))
            deed = case.of_node(node) if bad else None
            if deed is not None:
                born.append((deed, bad, _all_for_nothing(bad, came)))

        return hear

    hooks = [node.register_hook(listen(node)) for node in nodes_of(loss.grad_fn)]
    try:
        gradients: list[torch.Tensor | None] = list(torch.autograd.grad(loss, sources, start, allow_unused=True))
    finally:
        for hook in hooks:
            hook.remove()
    if not born:
        return gradients, None
    deed, bad, for_nothing = born[0]
    hidden = case.hidden(deed)
    if hidden is not None:
        return gradients, replace(hidden, made=bad)
    product = case.underflow(deed)
    unused = for_nothing and case.chosen_later(deed) is not None
    return gradients, Verdict(product or deed, None, deed if product is not None else None, unused, bad)


def nodes_of(root: Any) -> Iterator[Any]:
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen or not hasattr(node, "_sequence_nr"):
            continue
        seen.add(node)
        yield node
        waiting += [following for following, _ in node.next_functions]


def _all_for_nothing(bad: tuple[torch.Tensor, ...], came: Any) -> bool:
    """Only where the gradient that came is zero is the one given back not finite: 0 · inf."""
    for gradient in came:
        if gradient is not None and gradient.shape == bad[0].shape:
            return bool((gradient[~torch.isfinite(bad[0])] == 0).all())
    return False


def _writes(deed: Deed) -> bool:
    return any(made.key == given.key for made in deed.made for given in deed.given)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided and not tensor.is_meta else 0


__all__ = ["Case", "Verdict", "Witness", "backward"]
