"""A place that is not there: which one, in which table, from the call that raised and the names in the user's line."""

import ast
import re
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.failures.given import OUTPUTS, given_at, last_with
from sleuth.adapters.torch.failures.source import Function, functions, names_in
from sleuth.adapters.torch.place import TORCH
from sleuth.core.observation import OutOfRange
from sleuth.core.runtime.place import innermost

SAID = re.compile(
    r"index out of range in self|index -?\d+ is out of bounds for dimension \d+ with size \d+|Target -?\d+ is out of bounds|"
    r"INDICES element is out of DATA bounds|which is not in the valid range \[0, \d+\)|tried to access index -?\d+ on a tensor|"
    r"Class values must be (?:smaller than num_classes|non-negative)"
)
BOUNDS = re.compile(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)")
SELECTED = re.compile(r"id=(-?\d+) axis_dim=(\d+)")
TAKEN = re.compile(r"tried to access index (-?\d+) on a tensor of (\d+) elements")
# The table is the first of what they are given; the places, and the axis where it is not told, stand behind.
CALLS = ("gather", "index_select", "take", "take_along_dim", "scatter", "scatter_", "scatter_add", "scatter_add_", "index_add_",
         "index_copy_", "index_fill_", "embedding", "one_hot")  # fmt: skip


def read_out_of_range(error: BaseException, model: nn.Module | None) -> OutOfRange | None:
    if not isinstance(error, IndexError | RuntimeError) or SAID.search(str(error)) is None:
        return None
    location = innermost(error.__traceback__, (TORCH,))
    found = _embedding(error.__traceback__, model) or _class(error.__traceback__) or _line(error)
    return None if found is None else _placed(OutOfRange(**{"location": location, **found}), error, model)


def _placed(outside: OutOfRange, error: BaseException, model: nn.Module | None) -> OutOfRange:
    """At the line that made the table too small. Numbers that are negative, or that count from 1, are wrong themselves."""
    counted = outside.kind == "class" and (outside.lowest, outside.highest) == (1, outside.size)
    if outside.kind not in ("embedding", "class") or outside.lowest < 0 or counted:
        return outside
    if outside.kind == "embedding":
        place = given_at(_table(error.__traceback__), "num_embeddings")
    else:
        place = given_at(last_with(model, outside.size), *OUTPUTS) if outside.table == "the output" else None
    return outside if place is None else replace(outside, location=place, raised=outside.location)


def _table(trace: TracebackType | None) -> nn.Module | None:
    owners = (frame.f_locals.get("self") for frame in _frames(trace))
    return next((owner for owner in owners if isinstance(owner, nn.Embedding | nn.EmbeddingBag)), None)


def _embedding(trace: TracebackType | None, model: nn.Module | None) -> dict[str, Any] | None:
    """`F.embedding` runs in Python, whoever calls it: its frame holds ids and table."""
    paths = {id(m): path for path, m in model.named_modules()} if model is not None else {}
    layer = None
    for frame in _frames(trace):
        values, owner = frame.f_locals, frame.f_locals.get("self")
        if isinstance(owner, nn.Embedding | nn.EmbeddingBag):
            layer = owner
        inside = frame.f_code.co_filename.startswith(TORCH) and frame.f_code.co_name in ("embedding", "embedding_bag")
        if inside and isinstance(values.get("input"), torch.Tensor) and isinstance(values.get("weight"), torch.Tensor):
            ids, weight = values["input"], values["weight"]
            if not _readable(ids):
                return None
            table = (paths.get(id(layer)) or type(layer).__name__) if layer is not None else _named(trace, weight) or "the table"
            kind = "position" if _counts(ids, weight.shape[0]) else "embedding"
            return _asked(kind, table, weight.shape[0], ids, 0, _named(trace, ids) or "")
    return None


def _counts(ids: torch.Tensor, rows: int) -> bool:
    """0, 1, 2, … beyond the last row: places in a sequence, not words."""
    if not ids.dim() or ids.shape[-1] <= rows:
        return False
    return bool((ids.detach().long() == torch.arange(ids.shape[-1])).all())


def _class(trace: TracebackType | None) -> dict[str, Any] | None:
    for frame in _frames(trace):
        values = frame.f_locals
        output, target = values.get("input"), values.get("target")
        if not frame.f_code.co_filename.startswith(TORCH) or not isinstance(output, torch.Tensor):
            continue
        if isinstance(target, torch.Tensor) and _readable(target) and not target.is_floating_point() and output.dim():
            classes = output.shape[1 if output.dim() > 1 else 0]
            ignored = values.get("ignore_index", getattr(values.get("self"), "ignore_index", -100))
            counted = target[target != ignored]
            return _asked("class", "the output", classes, counted, 1, _named(trace, target) or "")
    return None


def _line(error: BaseException) -> dict[str, Any] | None:
    """From the expression in the user's line that raised."""
    mine = next(iter(functions(error.__traceback__)), None)
    said = BOUNDS.search(str(error)) or SELECTED.search(str(error)) or TAKEN.search(str(error))
    wrong, axis, size = _said(said) if said is not None else (None, 0, None)
    if mine is None:
        return None
    match mine.failing:
        case ast.Subscript(value=table, slice=places):
            return _looked_up(mine, table, places, axis, wrong, size)
        case ast.Call(func=ast.Attribute(value=owner, attr=verb), args=args) if verb in CALLS:
            table, *rest = [owner, *args] if isinstance(mine.lookup(owner), torch.Tensor) else args or [owner]
            tensors = [a for a in rest if isinstance(mine.lookup(a), torch.Tensor)]
            if verb == "one_hot":
                return _one_hot(mine, table, rest)
            numbers = [n for a in rest if type(n := mine.lookup(a)) is int]
            axis = axis or next(iter(numbers), 0)
            return _looked_up(mine, table, tensors[0] if tensors else None, axis, wrong, size)
    return _plain(wrong, axis, size, "the tensor", "") if size is not None and wrong is not None else None


def _looked_up(
    mine: Function, table: ast.AST, places: ast.AST | None, axis: int, wrong: int | None, size: int | None
) -> dict[str, Any] | None:
    name, value = ast.unparse(table), mine.lookup(table)
    if size is None and isinstance(value, torch.Tensor):
        size = value.shape[axis] if value.dim() > axis else None
    parts = list(places.elts) if isinstance(places, ast.Tuple) else [places]
    tensors = [(part, t) for part in parts if isinstance(t := mine.lookup(part), torch.Tensor) and _readable(t)]
    for part, tensor in tensors:
        whole = not tensor.is_floating_point() and tensor.dtype is not torch.bool and tensor.numel()
        if size is not None and whole and (int(tensor.max()) >= size or int(tensor.min()) < -size):
            return _asked("index", name, size, tensor, axis, ast.unparse(part) if part is not None else "")
    if size is None or wrong is None:
        return None
    named = next((n for part in parts for n in names_in(part)), "")
    return _plain(wrong, axis, size, name, named)


def _one_hot(mine: Function, values: ast.AST, rest: list[ast.expr]) -> dict[str, Any] | None:
    tensor = mine.lookup(values)
    classes = next((c for a in rest if isinstance(c := mine.lookup(a), int)), None)
    if classes is None or not isinstance(tensor, torch.Tensor) or not _readable(tensor):
        return None
    return _asked("class", "one_hot", classes, tensor, 0, ast.unparse(values))


def _said(match: re.Match[str]) -> tuple[int, int, int]:
    numbers = [int(n) for n in match.groups()]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else (numbers[0], 0, numbers[1])


def _asked(kind: str, table: str, size: int, places: torch.Tensor, axis: int, index: str) -> dict[str, Any] | None:
    if not places.numel():
        return None
    places = places.detach()
    least = 0 if kind != "index" else -size
    outside = int(((places >= size) | (places < least)).sum())
    if not outside:
        return None
    low, high = int(places.min()), int(places.max())
    return {"kind": kind, "table": table, "size": int(size), "lowest": low, "highest": high, "axis": axis, "index": index,
            "outside": outside, "asked": places.numel()}  # fmt: skip


def _plain(wrong: int, axis: int, size: int, table: str, index: str) -> dict[str, Any]:
    return {"kind": "index", "table": table, "size": size, "lowest": wrong, "highest": wrong, "axis": axis, "index": index}


def _named(trace: TracebackType | None, tensor: torch.Tensor) -> str | None:
    """How the innermost function of the user's that knows it calls a tensor."""
    for mine in functions(trace):
        name = next((name for name, value in mine.frame.f_locals.items() if value is tensor), None)
        if name is not None:
            return name
    return None


def _readable(tensor: torch.Tensor) -> bool:
    """After an assertion of a device nothing that lies there can be read."""
    return not tensor.is_meta and tensor.device.type == "cpu"


def _frames(trace: TracebackType | None) -> list[FrameType]:
    found = []
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found
