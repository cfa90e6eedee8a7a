"""What is left of a graph whose backward raised: its root, its nodes, and which of them were used up or changed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

# A graph that is larger is not walked to its end.
MOST_NODES = 20_000
# Nodes of parameters carry the largest number there is.
LEAF = 1 << 62
USED_UP = re.compile(r"second time|already been freed")
CHANGED = re.compile(r"modified by an inplace operation")


@dataclass
class State:
    used: bool = False  # something behind the node was freed by an earlier backward
    fresh: bool = False  # something behind it is still there


def root_of(trace: TracebackType | None) -> torch.Tensor | None:
    """What `backward` was called on."""
    found = None
    while trace is not None:
        code, values = trace.tb_frame.f_code, trace.tb_frame.f_locals
        if code.co_name in ("backward", "grad"):
            several = values.get("tensors", values.get("outputs"))
            inner = several[0] if isinstance(several, list | tuple) and several else several
            thing = values.get("self") if isinstance(values.get("self"), torch.Tensor) else inner
            found = thing if isinstance(thing, torch.Tensor) and found is None else found
        trace = trace.tb_next
    return found


def nodes_behind(tensor: torch.Tensor) -> dict[int, Any]:
    """By their number, leaves left out; oldest first."""
    waiting, found = [tensor.grad_fn], dict[int, Any]()
    while waiting and len(found) < MOST_NODES:
        node = waiting.pop()
        number = LEAF if node is None else node._sequence_nr()
        if node is None or number >= LEAF or number in found:
            continue
        found[number] = node
        waiting += [following for following, _ in node.next_functions]
    return dict(sorted(found.items()))


def states_of(nodes: dict[int, Any]) -> dict[int, State]:
    """Oldest first: whatever a node was made of is known before it."""
    states: dict[int, State] = {}
    for number, node in nodes.items():
        state = State()
        for message in saved(node):
            state.used |= message is not None and USED_UP.search(message) is not None
            state.fresh |= message is None
        for following, _ in node.next_functions:
            behind = states.get(LEAF if following is None else following._sequence_nr())
            if behind is not None:
                state.used |= behind.used
                state.fresh |= behind.fresh
        states[number] = state
    return states


def saved(node: Any) -> Iterator[str | None]:
    """For each tensor that a node has kept: None, or why it cannot be had any more."""
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                if isinstance(getattr(node, name), torch.Tensor):
                    yield None
            except RuntimeError as error:
                yield str(error)


def is_changed(node: Any) -> bool:
    return any(message is not None and CHANGED.search(message) for message in saved(node))
