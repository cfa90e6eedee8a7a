"""What an exception in forward, loss or backward of a Keras model really says, on a bench or in the user's own script."""

import re
from collections.abc import Callable
from typing import Any

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.checkpoint import read_misfit
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.user_lines import BENCH, made_at
from sleuth.core.location import Location, locate
from sleuth.core.observation import Crash, Failure, Observation
from sleuth.core.runtime.place import innermost, is_users

Told = tuple[str, str | None, str | None, str | None]  # kind, expected, got, advice
# Keras puts the message in bold, below the name of the layer and above what it was given.
BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)


def explain(error: Exception, phase: str, model: Any, layer: str | None = None) -> Failure:
    message, named, (kind, expected, got, advice) = read(error, model)
    found = layer or named
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=message,
        kind=kind,
        layer=found,
        expected=expected,
        got=got,
        advice=advice,
        location=_line(error) or next((made_at(one) for path, one in layers(model) if path == found), None),
    )


def explain_crash(error: BaseException, model: Any = None, steps: int = 0) -> list[Observation]:
    """What is behind an exception that ended a training or a script."""
    if not isinstance(error, Exception):
        return []
    misfit = read_misfit(error)
    message, layer, (kind, expected, got, advice) = read(error, model)
    place = innermost(error.__traceback__)
    first = message.splitlines()[0] if message else ""
    crash = Crash(steps, type(error).__name__, first, "forward" if kind != "other" else None, place)
    if misfit is not None:
        return [misfit, Crash(steps, type(error).__name__, first, None, place)]
    if kind != "other":
        told = Failure("forward", type(error).__name__, message, kind, layer, expected, got, advice, place)
        return [told, crash]
    return _crash_of_torch(error) or [crash]


def _crash_of_torch(error: BaseException) -> list[Observation]:
    if backend.name() != "torch":
        return []
    from sleuth.adapters.torch.failures import crash

    return crash.explain_crash(error, crash.Known())


def read(error: Exception, model: Any) -> tuple[str, str | None, Told]:
    """The message, the layer that it names, and what it says."""
    message = plain(str(error))
    return message, None if model is None else _named_layer(message, model), _tell(error, message)


def plain(message: str) -> str:
    bold = BOLD.findall(message)
    return (bold[-1] if bold else message).strip()


def _line(error: Exception) -> Location | None:
    """The innermost user's line below the bench."""
    found, trace, below = None, error.__traceback__, False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        below |= file == BENCH
        if below and is_users(file):
            found = locate(file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _named_layer(message: str, model: Any) -> str | None:
    found = re.search(r'layer "(?P<name>[^"]+)"', message)
    if found is None:
        return None
    return next((path for path, layer in layers(model) if layer.name == found["name"]), None)


def _tell(error: Exception, message: str) -> Told:
    for pattern, tell in PATTERNS:
        if found := re.search(pattern, message):
            return tell(found)
    if type(error).__name__ == "NotOneNumber":
        return "value", "one number", None, "average the loss over the batch: ops.mean(loss)"
    return "other", None, None, None


def _features(found: re.Match[str]) -> Told:
    wanted, shape = found["wanted"], found["shape"]
    last = shape.strip("()").rstrip(",").split(",")[-1].strip()
    return (
        "shape", f"{wanted} features", f"an input of shape {shape}",
        f"the layer was built for {wanted} features and gets {last}: change Input(shape=…) or the data, or let a fresh layer "
        "be built by its first call",
    )  # fmt: skip


def _matmul(found: re.Match[str]) -> Told:
    return "shape", f"{found['rows']} features", f"{found['columns']} features", "make the input as wide as the layer was built"


def _ndim(found: re.Match[str]) -> Told:
    return (
        "shape", f"{found['wanted']} axes", f"an input of shape {found['shape']}",
        "reshape the input, or put layers.Flatten() before the layer",
    )  # fmt: skip


def _two_shapes(found: re.Match[str]) -> Told:
    one, other = found["one"], found["other"]
    return "shape", f"shapes that fit {one}", other, f"bring both sides to one shape: one is {one}, the other {other}"


def _sizes(found: re.Match[str]) -> Told:
    one, other = found["one"], found["other"]
    return (
        "shape",
        f"size {other}",
        f"size {one}",
        f"bring both sides to one shape: one has {one} entries there, the other {other}",
    )


def _index(found: re.Match[str]) -> Told:
    return "index", None, None, "give the table or the output one row per class or token"


def _number(found: re.Match[str]) -> Told:
    return "dtype", None, None, "give arrays of numbers: x.astype('float32')"


# Read off Keras 3.15 on torch 2.13 and jax 0.10.
PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Told]], ...] = (
    (r"expected axis -?\d+ of input shape to have value (?P<wanted>\d+), but received input with shape (?P<shape>\([^)]*\))",
     _features),
    (r"expected (?:min_)?ndim=(?P<wanted>\d+), found ndim=\d+\. Full shape received: (?P<shape>\([^)]*\))", _ndim),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<columns>\d+) and (?P<rows>\d+)x\d+\)", _matmul),
    (r"size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<other>\d+)\)", _sizes),
    (r"got incompatible shapes for broadcasting: (?P<one>\([^)]*\)), (?P<other>\([^)]*\))", _two_shapes),
    (r"Incompatible shapes for broadcasting: shapes=\[(?P<one>\([^)]*\)), (?P<other>\([^)]*\))", _two_shapes),
    (r"must have the same shape.*?[Rr]eceived: .*?shape=(?P<one>\([^)]*\)).*?shape=(?P<other>\([^)]*\))", _two_shapes),
    (r"output\.shape=(?P<one>\([^)]*\)|torch\.Size\(\[[^\]]*\]\)), *target\.shape=(?P<other>\([^)]*\)|torch\.Size\(\[[^\]]*\]\))",
     _two_shapes),
    (r"(?:index|Index) .*out of (?:range|bounds)|Class values must be", _index),
    (r"(?:Invalid dtype|could not convert|not a valid JAX type)", _number),
)  # fmt: skip
