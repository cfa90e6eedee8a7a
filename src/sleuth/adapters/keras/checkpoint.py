"""A file of weights that was refused: what it holds against what the model would write."""

import ast
import linecache
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import keras

from sleuth.core.location import Location
from sleuth.core.observation import Entry, Misfit
from sleuth.core.place import innermost

# Keras shows no frame of its own between the user's line and this one, which holds what the call was given.
SHOWN = "error_handler"
SUFFIX = ".weights.h5"
# The model is written once to be compared.
MOST_BYTES = 256 << 20

Shapes = dict[str, tuple[int, ...]]


def read_misfit(error: BaseException) -> Misfit | None:
    """None where no weights were being loaded, or the file cannot be read here."""
    found = _loading(error.__traceback__)
    if not isinstance(error, ValueError) or found is None:
        return None
    model, path = found
    try:
        held, own = _shapes(path), _written_by(model)
    except Exception:  # not a file of this form; a model without variables
        return None
    if held == own:
        return None
    both = [name for name in own if name in held]
    reshaped = [name for name in both if held[name] != own[name]]
    place = innermost(error.__traceback__)
    return Misfit(
        "names",
        type(model).__name__,
        missing=tuple(Entry(name, own[name]) for name in own if name not in held),
        unexpected=tuple(Entry(name, held[name]) for name in held if name not in own),
        reshaped=tuple((Entry(name, held[name]), Entry(name, own[name])) for name in reshaped),
        fitting=len(both) - len(reshaped),
        verb="load_weights",
        by_file="skip_mismatch=True",
        location=place,
        **_words(place),
    )


def _loading(trace: TracebackType | None) -> tuple[Any, str] | None:
    """The model and the file of the outermost call that failed."""
    while trace is not None:
        frame = trace.tb_frame
        args = frame.f_locals.get("args") if frame.f_code.co_name == SHOWN else None
        if isinstance(args, tuple) and args and isinstance(args[0], keras.Model):
            path = args[1] if len(args) > 1 else frame.f_locals.get("kwargs", {}).get("filepath")
            if isinstance(path, str | os.PathLike) and str(path).endswith(SUFFIX):
                return args[0], str(path)
        trace = trace.tb_next
    return None


def _written_by(model: Any) -> Shapes:
    if sum(int(v.value.nbytes) for v in model.weights) > MOST_BYTES:
        raise ValueError("the model is too large to be written once more")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"model{SUFFIX}")
        model.save_weights(path)
        return _shapes(path)


def _shapes(path: str) -> Shapes:
    """By the layers' names; a file numbers the variables of a layer."""
    import h5py

    found: Shapes = {}

    def note(name: str, thing: Any) -> None:
        # The optimiser's state may lie beside the model's.
        if isinstance(thing, h5py.Dataset) and not name.startswith("optimizer/"):
            found[name.replace("/vars/", ".").replace("/", ".")] = tuple(int(n) for n in thing.shape)

    with h5py.File(path, "r") as file:
        file.visititems(note)
    return found


def _words(place: Location | None) -> dict[str, Any]:
    """What the user's line calls the model and the file."""
    text = "" if place is None else linecache.getline(place.file, place.line).strip()
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # a part of a longer statement
        return {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="load_weights"), args=args):
                return {"owner": ast.unparse(owner)} | ({"state": ast.unparse(args[0])} if args else {})
    return {}
