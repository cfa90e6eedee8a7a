"""Scenes of a run: a folder each, with JSON and safetensors. Nothing in them can be executed."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sleuth.core.contract.scene import Scene, StoredArray
from sleuth.core.errors import UnusableInput

FACTS, TENSORS = "scene.json", "tensors.safetensors"
# What the file format calls each dtype, and we.
NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
REQUIRED = ("framework", "name", "step", "calls", "losses", "random")


def folder_of(run: Path) -> Path:
    return (run if run.is_dir() else run.parent) / "scenes"


def write_scene(run: Path, number: int, facts: Mapping[str, Any], arrays: Mapping[str, StoredArray]) -> Path:
    """The facts last: a scene without them was not written to its end, and is not one. Raises OSError where the disk says no."""
    from safetensors import TensorSpec, serialize_file

    folder = folder_of(run) / str(number)
    try:
        folder.mkdir(parents=True)
        alive = {name: np.ascontiguousarray(np.frombuffer(a.data, np.uint8)) for name, a in arrays.items()}
        specs = {
            name: TensorSpec(dtype=a.dtype, shape=list(a.shape), data_ptr=alive[name].ctypes.data, data_len=alive[name].nbytes)
            for name, a in arrays.items()
        }
        serialize_file(specs, folder / TENSORS, {"format": "pt"})
        (folder / FACTS).write_text(json.dumps(facts, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        # The library wraps what the system said.
        raise error if isinstance(error, OSError) or not isinstance(error, Exception) else OSError(str(error)) from None
    return folder


def scenes_of(run: Path) -> tuple[int, ...]:
    """The numbers of the scenes of a run, in the order in which they were kept."""
    found = [folder for folder in folder_of(run).glob("*") if folder.name.isdigit() and (folder / FACTS).is_file()]
    return tuple(sorted(int(folder.name) for folder in found))


def read_scene(run: Path, number: int) -> Scene:
    known = scenes_of(run)
    if number not in known:
        there = f"it has {', '.join(map(str, known))}" if known else "it has none: nothing went wrong that is worth keeping"
        raise UnusableInput(f"{run} has no scene {number}; {there}.")
    folder = folder_of(run) / str(number)
    try:
        from safetensors import SafetensorError, deserialize
    except ImportError:
        raise UnusableInput("reading a scene needs the package safetensors: pip install safetensors") from None
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        arrays = {name: _array(entry) for name, entry in deserialize((folder / TENSORS).read_bytes())}
    except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as error:
        raise UnusableInput(f"scene {number} of {run} cannot be read: {type(error).__name__}: {error}") from None
    if not isinstance(facts, dict) or any(key not in facts for key in REQUIRED):
        raise UnusableInput(f"scene {number} of {run} is damaged: {folder / FACTS} does not describe a scene.")
    return Scene(number, facts, arrays)


def _array(entry: Mapping[str, Any]) -> StoredArray:
    shape = tuple(int(size) for size in entry["shape"])
    array = StoredArray(NAMES[entry["dtype"]], shape, bytes(entry["data"]))
    if math.prod(shape) and len(array.data) % math.prod(shape):
        raise ValueError("an array is cut short")
    return array
