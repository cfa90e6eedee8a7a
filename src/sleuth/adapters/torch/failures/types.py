"""Dtypes, devices, indices, batches of one, and what is no tensor at all."""

import re
from typing import Any

import torch

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene, sides
from sleuth.core.words import with_article

CURES = {
    "float64": "x.float(), or make the arrays with dtype=np.float32",
    "uint8": "x.float() / 255",
    "int64": "x.float(); if they are ids, put an Embedding before it",
    "int32": "x.float(); if they are ids, put an Embedding before it",
    "bool": "x.float()",
    "float16": "x.float(), or put the model into the same type: model.half()",
    "bfloat16": "x.float(), or put the model into the same type: model.bfloat16()",
}
METHODS = "flatten|view|reshape|size|shape|dim|float|to|mean|sum"
WORDS = {"Double": "float64", "Byte": "uint8", "Long": "int64", "Int": "int32", "Float": "float32", "Half": "float16",
         "BFloat16": "bfloat16", "double": "float64", "unsigned char": "uint8", "long long": "int64", "long": "int64",
         "int": "int32", "float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "bool": "bool",
         "Bool": "bool"}  # fmt: skip


def _dtype(match: re.Match[str], scene: Scene) -> Explained:
    got, wants = (WORDS.get(word, word.removeprefix("torch.")) for word in (match["got"], match["wants"]))
    if scene.tensor is not None and scene.module is not None:
        got = _plain(scene.tensor.dtype)
        weight = next(scene.module.parameters(recurse=False), None)
        wants = _plain(weight.dtype) if weight is not None else wants
    cure = CURES.get(got, f"x.to(torch.{wants})")
    if got == "float32":
        cure = f"x.to(torch.{wants}), or bring the model back with model.float()"
    return Explained("dtype", wants, got, f"convert what goes into {scene.name()}: {cure}")


def _embedding_dtype(match: re.Match[str], scene: Scene) -> Explained:
    got = _plain(scene.tensor.dtype) if scene.tensor is not None else WORDS.get(match[1], match[1])
    return Explained(
        "dtype", "int64 ids", got, f"give {scene.name()} whole numbers: x.long(); real numbers need a Linear instead"
    )


def _device(match: re.Match[str], scene: Scene) -> Explained:
    weight = next(scene.module.parameters(recurse=False), None) if scene.module is not None else None
    tensors = [t for t in (*scene.given, scene.input, scene.target) if isinstance(t, torch.Tensor)] + list(scene.operands)
    other = next((t for t in tensors if weight is not None and t.device != weight.device), None)
    if weight is not None and other is not None and all(t is not weight for t in tensors[:1]):
        wants, got = str(weight.device), str(other.device)
        advice = (
            f"{scene.name()} is on {wants}, its input on {got}: bring both to one device, model.to(device) and x = x.to(device)"
        )
        return Explained("device", wants, got, advice)
    alone = _on_its_own(scene, tensors)
    names = sorted({str(t.device) for t in tensors}) or [g for g in match.groups() if g]
    where = " and ".join(names) or "two devices"
    return Explained(
        "device", "one device", where, alone or "bring both sides to one device: x.to(next(model.parameters()).device)"
    )


def _on_its_own(scene: Scene, tensors: list[torch.Tensor]) -> str | None:
    """A plain tensor of the model's own stays behind when the model is moved."""
    for name, value in vars(scene.module).items() if scene.module is not None else ():
        if any(value is t for t in tensors) and any(t.device != value.device for t in tensors):
            return (
                f"register it, self.register_buffer({name!r}, …): self.{name} is a plain tensor on {value.device}, "
                "which model.to(device) leaves behind"
            )
    named = [(n, t) for t in tensors if (n := scene.name_of(t)) is not None]
    if len(named) > 1:
        told = " and ".join(f"{n} is on {t.device}" for n, t in named[:2])
        return f"bring them together, {named[1][0]}.to({named[0][0]}.device): {told}"
    weight = next((t for t in tensors if t is not scene.input and t is not scene.target), None)
    if isinstance(scene.input, torch.Tensor) and weight is not None and weight.device != scene.input.device:
        return (
            f"move the loss, loss.to(output.device): it holds a tensor on {weight.device}, the output is on {scene.input.device}"
        )
    if isinstance(scene.input, torch.Tensor) and isinstance(scene.target, torch.Tensor):
        devices = f"the output is on {scene.input.device}, the target on {scene.target.device}"
        return f"move the target, target.to(output.device): {devices}"
    return None


def _row(match: re.Match[str], scene: Scene) -> Explained | None:
    ids = next((t for t in (scene.tensor, *scene.operands) if t is not None and not t.is_floating_point()), None)
    rows = getattr(scene.module, "num_embeddings", None)
    if rows is None and (table := next((t for t in scene.operands if t.is_floating_point() and t.dim() == 2), None)) is not None:
        rows = table.shape[0]
    if ids is None or rows is None or ids.is_meta:
        return Explained("index", None, None, "give the table a row for every id: its size must be larger than the largest id")
    low, high = int(ids.min()), int(ids.max())
    if low < 0:
        advice = f"id {low} is negative: map what is unknown to an id of its own, from 0 to {rows - 1}"
        return Explained("index", f"ids from 0 to {rows - 1}", f"id {low}", advice)
    width = getattr(scene.module, "embedding_dim", "…")
    advice = f"make it Embedding({high + 1}, {width}) or larger, or map ids of {rows} and above to an unknown id"
    return Explained("index", f"ids from 0 to {rows - 1} ({rows} rows)", f"id {high}", advice)


def _index(match: re.Match[str], scene: Scene) -> Explained:
    index, axis, size = match.groups()
    return Explained(
        "index",
        f"at most {int(size) - 1} on axis {axis}",
        index,
        f"axis {axis} has {size} entries: count from 0, or index another axis",
    )


def _alone(match: re.Match[str], scene: Scene) -> Explained:
    advice = f"{scene.name()} needs more than one sample to train: set drop_last=True in the loader, or use LayerNorm"
    return Explained("batch-of-one", "at least two samples", f"shape {match[1]}", advice)


def _no_tensor(match: re.Match[str], scene: Scene) -> Explained:
    kind = match["got"].removeprefix("numpy.")
    thing = next((g for g in (*scene.given, scene.input, scene.target) if type(g).__name__ == kind), None)
    where = scene.name() if scene.module is not None else "the loss"
    return Explained("type", "a tensor", _describe(kind, thing), f"{where} gets {_article(kind)}: {_unpack(kind, thing)}")


def _unpack(kind: str, thing: Any) -> str:
    if kind == "tuple":
        return "take the tensor out of it, x[0]; recurrent layers and attention return (output, state): out, _ = layer(x)"
    if kind == "list":
        return "stack it: torch.stack(xs), or let the collate function do so"
    if kind == "dict":
        keys = ", ".join(map(repr, list(thing)[:4])) if isinstance(thing, dict) else "'…'"
        return f"take the tensor out of it by its key ({keys})"
    if kind == "ndarray":
        return "convert it: torch.as_tensor(x)"
    if kind == "NoneType":
        return "something before it returned nothing; is a `return` missing?"
    return "convert it to a tensor: torch.as_tensor(x)"


def _describe(kind: str, thing: Any) -> str:
    if isinstance(thing, tuple | list):
        return f"{_article(kind)} of {len(thing)}: " + ", ".join(
            sides(t.shape) if isinstance(t, torch.Tensor) else type(t).__name__ for t in thing[:4]
        )
    return _article(kind)


def _article(kind: str) -> str:
    return "None" if kind == "NoneType" else with_article(kind)


def _not_implemented(match: re.Match[str], scene: Scene) -> Explained:
    got = WORDS.get(match[1], match[1])
    return Explained("dtype", "a floating type", got, f"convert what goes into it: {CURES.get(got, 'x.float()')}")


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


TYPES = Patterns(
    (
        (r"'indices' to have one of the following scalar types: Long, Int; but got torch\.(\w+)Tensor", _embedding_dtype),
        (r"must have the same dtype, but got (?P<got>[\w:]+) and (?P<wants>[\w:]+)", _dtype),
        (r"Input type \((?P<got>[\w: ]+)\) and (?:bias|weight) type \((?P<wants>[\w: ]+)\) should be the same", _dtype),
        (r"input dtype \((?P<got>[\w.]+)\) does not match weight dtype \((?P<wants>[\w.]+)\)", _dtype),
        (r"expected (?:m1 and m2|mat1 and mat2) to have the same dtype, but got: (?P<got>[\w:]+) != (?P<wants>[\w:]+)", _dtype),
        (r"expected scalar type (?P<wants>[\w:]+) but found (?P<got>[\w:]+)", _dtype),
        (r"\"\w+\" not implemented for '(\w+)'", _not_implemented),
        (r"all tensors to be on the same device, but found at least two devices, ([\w:]+) and ([\w:]+)", _device),
        (r"all tensors to be on the same device, but got \w+ is on ([\w:]+), different from other tensors on ([\w:]+)", _device),
        (r"Tensor on device ([\w:]+) is not on the expected device ([\w:]+)", _device),
        (r"Input type \(torch\.([\w.]+Tensor)\) and weight type \(torch\.([\w.]+Tensor)\)", _device),
        (r"index out of range in self", _row),
        (r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", _index),
        (r"Expected more than 1 [\w ]+ when training, got input size torch\.Size\((\[[\d, ]+\])\)", _alone),
        (r"must be Tensor, not (?P<got>[\w.]+)", _no_tensor),
        (rf"'(?P<got>tuple|list|dict|NoneType)' object has no attribute '(?:{METHODS})'", _no_tensor),
        (r"invalid combination of arguments - got \((?P<got>tuple|list|dict|numpy\.ndarray|NoneType)", _no_tensor),
    )
)  # fmt: skip
