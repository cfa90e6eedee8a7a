"""“Modified by an inplace operation”: which tensor it is in the user's words, and which line changed it.

Four ways, the surest first: the weight that a step has written; the step done again on a copy, where the node that complains is
known together with what was written after it; a variable of that shape and version; the only line of a forward that could.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.failures.calls import Again
from sleuth.adapters.torch.failures.graph import is_changed
from sleuth.adapters.torch.failures.in_place import writes
from sleuth.adapters.torch.failures.source import Function, functions, tree_of, writes_in_place
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.watching.user_variables import variables
from sleuth.core.location import Location, locate
from sleuth.core.observation import Failure
from sleuth.core.runtime.tree import leaves

MESSAGE = re.compile(
    r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\](?:, which is output \d+ of ([\w:]+))?,? is at version (\d+)"
)
SEARCH_SECONDS = 0.5
SIGNS = {"__setitem__": "x[…] = …", "__iadd__": "+=", "__isub__": "-=", "__imul__": "*=", "__itruediv__": "/="}


@dataclass(frozen=True)
class Told:
    shape: tuple[int, ...]
    maker: str
    version: int


def name_what_changed(failure: Failure, error: BaseException, model: nn.Module | None, again: Again) -> Failure:
    match = MESSAGE.search(failure.message)
    if match is None:
        return failure
    told = Told(tuple(int(n) for n in match[1].split(",") if n.strip()), match[2] or "", int(match[3]))
    mine = functions(error.__traceback__)
    ways: tuple[Callable[[], Failure | None], ...] = (
        lambda: _stepped(failure, told, model, mine),
        lambda: _done_again(failure, again),
        lambda: _variable(failure, told, mine),
        lambda: _only_line(failure, model),
    )
    return next((found for way in ways if (found := way()) is not None), failure)


def _stepped(failure: Failure, told: Told, model: nn.Module | None, mine: list[Function]) -> Failure | None:
    """A weight has a new version because an optimiser wrote it, between the forward and this backward."""
    named = list(model.named_parameters()) if model is not None else []
    same = [n for n, p in named if tuple(p.shape) in (told.shape, told.shape[::-1]) and p._version == told.version]
    if not same or told.version < 1 or (told.maker and not told.maker.startswith(("AsStrided", "T", "Permute", "Transpose"))):
        return None
    steps = [(one, node) for one in mine for node in _steps(one)]
    if not steps:
        return None
    one, node = next(((o, n) for o, n in reversed(steps) if n.lineno < o.line), steps[0])
    name = same[0] if len(same) == 1 else "a weight"
    return replace(
        failure,
        expected=f"{name} as it was in the forward pass",
        got=f"{name} written by {ast.unparse(node)} (line {node.lineno}) in between",
        advice=f"call every backward() before {ast.unparse(node)}, or compute the loss anew after it",
        layer=same[0].rpartition(".")[0] or None if len(same) == 1 else None,
        location=one.at(node),
    )


def _steps(mine: Function) -> list[ast.Call]:
    found = []
    for node in mine.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="step", value=owner), args=[]) if "sched" not in ast.unparse(owner).lower():
                found.append(node)
    return found


def _done_again(failure: Failure, again: Again) -> Failure | None:
    built = again()
    if built is None:
        return None
    twin, run = built
    notes = WriteNotes(twin)
    with notes.listener.listening():
        run()
    guilty = notes.guilty()
    if guilty is None:
        return None
    op, maker = guilty
    return replace(
        failure,
        expected=f"what {maker.name} kept, unchanged" if maker.name else failure.expected,
        got=f"a tensor that {_named(op)} changed in place",
        location=op.location or failure.location,
        layer=op.layer or failure.layer,
        advice=f"build {op.layer or 'it'} without inplace=True"
        if op.kwargs.get("inplace") is True
        else _cure(op.location.text if op.location else ""),
    )


def _named(op: Op) -> str:
    if op.kwargs.get("inplace") is True:
        return f"{op.name}(inplace=True)"
    return SIGNS.get(op.name, op.name)


class WriteNotes:
    """Listens to a step for what each op made or was given, and what was written into it afterwards."""

    def __init__(self, model: nn.Module) -> None:
        self.listener = Listener(model)
        self._made: list[tuple[int, Op, Any, set[int]]] = []  # order, op, its node, the memory it touched
        self._written: list[tuple[int, Op, int]] = []  # order, op, the memory it wrote
        self.listener.on_op.append(self._op)

    def _op(self, op: Op, output: Any) -> None:
        order = len(self._made) + len(self._written)
        given = [t for _, t in leaves([list(op.args), dict(op.kwargs)], is_tensor)]
        made = [t for _, t in leaves(output, is_tensor)]
        if given and (writes(op) or op.kwargs.get("inplace") is True):
            self._written.append((order, op, _memory(given[0])))
        node = next((t.grad_fn for t in made if t.grad_fn is not None), None)
        if node is not None:
            self._made.append((order, op, node, {_memory(t) for t in (*given, *made)}))

    def guilty(self) -> tuple[Op, Op] | None:
        """The op that wrote, and the one that still needed what was there."""
        for order, maker, node, touched in self._made:
            if is_changed(node):
                for later, op, memory in self._written:
                    if later > order and memory in touched:
                        return op, maker
        return None


def _variable(failure: Failure, told: Told, mine: list[Function]) -> Failure | None:
    """A variable of that shape and version, and the line that writes into it."""
    for variable in variables(mine[0].frame if mine else None, SEARCH_SECONDS):
        tensor = variable.value
        if not isinstance(tensor, torch.Tensor) or isinstance(tensor, nn.Parameter) or not _matches(tensor, told):
            continue
        for one in mine:
            lines = [n for n in one.nodes if variable.name in writes_in_place(n)]
            if lines:
                node: Any = next((n for n in reversed(lines) if getattr(n, "lineno", 0) < one.line), lines[0])
                at = one.at(node)
                return replace(
                    failure,
                    got=f"{variable.name} {told.shape} changed in place",
                    location=at or failure.location,
                    advice=_cure(at.text if at else ""),
                )
    return None


def _matches(tensor: torch.Tensor, told: Told) -> bool:
    base = tensor._base
    shapes = [tuple(tensor.shape)] + ([tuple(base.shape)] if base is not None else [])
    try:
        return told.shape in shapes and tensor._version == told.version
    except RuntimeError:  # a tensor of inference mode has no version
        return False


def _only_line(failure: Failure, model: nn.Module | None) -> Failure | None:
    """Nothing could be done again: the one line in the forwards of the model that writes in place."""
    lines = list(dict.fromkeys(_writing_lines(model))) if model is not None else []
    if len(lines) != 1:
        return None
    got = f"{failure.got}, most likely by this line: no other in its forward writes in place"
    return replace(failure, got=got, location=lines[0], advice=_cure(lines[0].text))


def _writing_lines(model: nn.Module) -> Iterator[Location]:
    for kind in dict.fromkeys(type(module) for module in model.modules()):
        forward = inspect.unwrap(kind.forward)
        code = getattr(forward, "__code__", None)
        if code is None or not is_users(code.co_filename):
            continue
        tree = tree_of(code.co_filename)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef) and node.name == "forward" and node.lineno == code.co_firstlineno:
                yield from (locate(code.co_filename, n.lineno) for n in ast.walk(node) if isinstance(n, ast.stmt | ast.expr)
                            and writes_in_place(n) and not _counts(n))  # fmt: skip


def _counts(node: ast.AST) -> bool:
    """`i += 1`: a plain number most likely."""
    return isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)


def _cure(text: str) -> str:
    """The line written without a change in place."""
    try:
        statement = ast.parse(text.rstrip(":")).body[0] if text else None
    except SyntaxError:
        statement = None
    match statement:
        case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
            sign = ast.unparse(ast.BinOp(ast.Name(target.id), op, value))
            return f"make a new tensor instead: {target.id} = {sign}"
        case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
            name = ast.unparse(target).partition("[")[0]
            return f"write into a copy, {name} = {name}.clone() before this line, or build it anew with torch.where or torch.cat"
    verb = re.search(r"\.(\w+[a-z0-9])_\(", text)
    if verb is not None:
        return f"use the one that makes a new tensor: {verb[1]}(…) instead of {verb[1]}_(…)"
    if "inplace=True" in text:
        return "leave inplace=True out"
    return (
        "write it without changing the tensor in place (x = x + y, not x += y; relu(x), not relu_(x); inplace=False), "
        "or change a copy: x.clone()"
    )


def _memory(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors have none
        return id(tensor)
