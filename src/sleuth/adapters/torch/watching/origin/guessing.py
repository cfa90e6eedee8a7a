"""A gradient went wrong in a loss that was never heard before: its graph still tells which operations it is made of."""

import re
from collections.abc import Iterator
from typing import Any

import torch

from sleuth.adapters.torch.watching.loss_expression import line_calling
from sleuth.adapters.torch.watching.step_memory import Memory, outputs_of
from sleuth.core.observation import Origin

# Their slope is infinite at a value that they have; the others' only where the result is not finite either, or nearly so.
STEEP = ("Sqrt", "Rsqrt", "Acos", "Asin", "Hypot", "Acosh", "Atanh")
OTHERS = ("Pow", "Div", "Log")
MOST_NODES = 400


def guess(step: int, loss: torch.Tensor | None, memory: Memory) -> Origin | None:
    """Only where a single operation can be meant; what the model itself does was found to be sound."""
    if loss is None:
        return None
    model = {t.grad_fn for forward in memory.forwards for _, t in outputs_of(forward) if t.grad_fn is not None}
    names = [re.sub(r"Backward\d*$", "", node.name()) for node in _outside(loss.grad_fn, model)]
    for kinds in (STEEP, OTHERS):
        met = [name for name in names if name in kinds]
        if met:
            if len(met) > 1:
                return None
            word = met[0].lower()
            return Origin(step, word, "backward", None, (), line_calling(word), outside=True, certain=False)
    return None


def _outside(root: Any, model: set[Any]) -> Iterator[Any]:
    """The nodes from the loss to what the model returned."""
    seen, waiting = set(model), [root]
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting += [following for following, _ in node.next_functions]
