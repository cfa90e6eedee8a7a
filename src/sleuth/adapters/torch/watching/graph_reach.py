"""How far back in time the graph of a tensor goes. Nodes are numbered in the order in which they were made."""

import heapq
import time
from itertools import count
from typing import Any, NamedTuple

import torch

# Nodes of parameters carry the largest number there is.
LEAF = 1 << 62


def reach(tensor: torch.Tensor, target: int, most_nodes: int = 4096) -> int:
    """The least number found behind a tensor. The oldest nodes are followed first, so a chain through the steps is walked along
    and not across; the walk ends when it comes to `target`."""
    if tensor.grad_fn is None:
        return LEAF
    waiting: list[tuple[int, int, Any]] = [(tensor.grad_fn._sequence_nr(), 0, tensor.grad_fn)]
    seen: set[int] = set()
    least = LEAF
    order = count(1)
    for _ in range(most_nodes):
        if not waiting:
            break
        number, _, node = heapq.heappop(waiting)
        least = min(least, number)
        if least <= target:
            break
        for following, _ in node.next_functions:
            mine = LEAF if following is None else following._sequence_nr()
            if mine < LEAF and mine not in seen:
                seen.add(mine)
                heapq.heappush(waiting, (mine, next(order), following))
    return least


class Crossing(NamedTuple):
    """An edge of the graph: the numbers of the two nodes it joins, and whether one number goes along it."""

    newer: int
    older: int
    scalar: bool


def crossings(tensor: torch.Tensor, since: int, seconds: float) -> list[Crossing]:
    """Where the graph of a tensor leaves what was made since a number."""
    found: list[Crossing] = []
    waiting, seen = [tensor.grad_fn], set[int]()
    ends = time.thread_time() + seconds
    while waiting and time.thread_time() < ends:
        node = waiting.pop()
        if node is None:
            continue
        number = node._sequence_nr()
        for following, _ in node.next_functions:
            mine = LEAF if following is None else following._sequence_nr()
            if mine >= LEAF or mine in seen:
                continue
            if mine < since:
                found.append(Crossing(number, mine, _is_scalar(following)))
            else:
                seen.add(mine)
                waiting.append(following)
    return found


def deep(node: Any, most_nodes: int) -> Any:
    """Down from a node to where its graph begins, always to the oldest one."""
    for _ in range(most_nodes):
        behind = [(n._sequence_nr(), n) for n, _ in node.next_functions if n is not None]
        oldest = min(behind, key=lambda pair: pair[0], default=(LEAF, node))
        if oldest[0] >= LEAF:
            break
        node = oldest[1]
    return node


def _is_scalar(node: Any) -> bool:
    shapes = [tuple(one.shape) for one in node._input_metadata]
    return shapes == [()]
