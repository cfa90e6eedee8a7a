"""What the graph of a loss still holds just before its backward: in which op outside the model NaN or Inf was born."""

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from sleuth.adapters.torch.place import is_users
from sleuth.core.location import Location, locate

MOST_NODES = 400

Again = Callable[[Any], torch.Tensor]


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Again:
    return lambda node: function(node._saved_self)


# Autograd keeps an op's input or its result, whichever its derivative needs.
FROM_INPUT = ("Log", "Log2", "Log10", "Log1p", "Acos", "Asin", "Acosh", "Atanh")
FROM_RESULT = ("Sqrt", "Rsqrt", "Reciprocal", "Exp", "Expm1", "Softmax", "LogSoftmax")
RESULTS: dict[str, Again] = {
    **{f"{name}Backward0": _unary(getattr(torch, name.lower())) for name in FROM_INPUT},
    **{f"{name}Backward0": lambda node: node._saved_result for name in FROM_RESULT},
    "PowBackward0": lambda node: torch.pow(node._saved_self, node._saved_exponent),
    "DivBackward0": lambda node: node._saved_self / node._saved_other,
    "MulBackward0": lambda node: node._saved_self * node._saved_other,
}  # fmt: skip


@dataclass(frozen=True)
class Born:
    operation: str
    result: torch.Tensor
    ranges: tuple[tuple[float, float], ...]
    location: Location | None


def birth(loss: torch.Tensor) -> Born | None:
    """The op nearest to the model whose result is not finite while what autograd kept of its inputs is."""
    found = None
    with torch.no_grad():
        for node in _nodes(loss.grad_fn):
            result = _result(node)
            inputs = [t for t in _saved(node, ("_saved_self", "_saved_other")) if t is not None]
            if result is not None and not _finite(result) and all(map(_finite, inputs)):
                found = node, result, inputs
    if found is None:
        return None
    node, result, inputs = found
    name = re.sub(r"Backward\d*$", "", node.name())
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return Born(word, result, tuple((float(t.min()), float(t.max())) for t in inputs if t.numel()), line_calling(word))


def _nodes(root: Any) -> Iterator[Any]:
    """Breadth first: what is nearest to the loss comes first."""
    seen, waiting = {root}, [root]
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop(0)
        if node is None:
            continue
        yield node
        fresh = [following for following, _ in node.next_functions if following is not None and following not in seen]
        seen.update(fresh)
        waiting += fresh


def _result(node: Any) -> torch.Tensor | None:
    again = RESULTS.get(node.name())
    try:
        return None if again is None else again(node)
    except (RuntimeError, AttributeError, TypeError):  # freed, or not kept
        return None


def _saved(node: Any, names: tuple[str, ...]) -> Iterator[torch.Tensor | None]:
    for name in names:
        try:
            tensor = getattr(node, name, None)
        except RuntimeError:
            tensor = None
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            yield tensor.detach()


def _finite(tensor: torch.Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())


def line_calling(operation: str) -> Location | None:
    """The one line of the user's function above the backward, or else of the user's file, that calls it by name; None where
    there are several."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    file = frame.f_code.co_filename
    lines = _calling(operation, file, frame.f_code.co_firstlineno, frame.f_lineno) or _calling(operation, file, 1, None)
    return locate(file, lines[0]) if len(lines) == 1 else None


def _calling(operation: str, file: str, first: int, last: int | None) -> list[int]:
    call = re.compile(rf"\b{operation}_?\(|/" if operation == "div" else rf"\b{operation}_?\(")
    lines = linecache.getlines(file)
    end = len(lines) if last is None else min(last, len(lines))
    return [number for number in range(first, end + 1) if call.search(lines[number - 1].split("#")[0])]
