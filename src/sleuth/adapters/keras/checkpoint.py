"""A file of weights that was refused: what it holds against what the model would write."""

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import keras

from sleuth.adapters.common.refused_weights import differences, users_words
from sleuth.core.observation import Misfit
from sleuth.core.runtime.place import innermost

# Keras shows no frame of its own between the user's line and this one, which holds what the call was given.
SHOWN = "error_handler"
SUFFIX = ".weights.h5"
VERB = "load_weights"
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
    place = innermost(error.__traceback__)
    words: dict[str, Any] = differences(own, held) | users_words(place, VERB)
    return Misfit("names", type(model).__name__, verb=VERB, by_file="skip_mismatch=True", location=place, **words)


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
