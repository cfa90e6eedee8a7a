"""What an exception that NumPy raised really says."""

import re
from collections.abc import Callable
from types import TracebackType

import numpy as np

from sleuth.core.observation import Failure
from sleuth.core.runtime.place import is_users, location_of

Told = tuple[str, str | None, str | None, str | None]  # kind, expected, got, advice


def explain(error: Exception, phase: str, layer: str | None = None) -> Failure:
    kind, expected, got, advice = _tell(error)
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error),
        kind=kind,
        layer=layer,
        expected=expected,
        got=got,
        advice=advice,
        location=location_of(error.__traceback__),
    )


def _tell(error: Exception) -> Told:
    for pattern, tell in PATTERNS:
        found = re.search(pattern, str(error))
        if found:
            return tell(found, _shapes(error.__traceback__))
    if type(error).__name__ == "NotOneNumber":
        return "value", "one number", None, "average the loss over the batch: loss.mean()"
    return "other", None, None, None


def _matmul(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    weight, inputs = found["right"], found["left"]
    got = _named(shapes, lambda s: len(s) >= 1 and s[-1] == int(inputs)) or f"{inputs} features"
    return "shape", f"{weight} features", got, _widen(inputs, weight)


def _dot(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    expected, got = found["right"].split(",")[0].strip(), found["left"].split(",")[-1].strip()
    return "shape", f"{expected} features", f"an array of shape ({found['left']})", _widen(got, expected)


def _widen(got: str, expected: str) -> str:
    return (
        f"make the weight matrix {got} high instead of {expected}, or reshape the input so that its last axis is {expected} "
        "long: x.reshape(len(x), -1)"
    )


def _broadcast(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    parts = re.findall(r"\(([^)]*)\)", found["shapes"])
    one, other = (f"({p})" for p in [*parts, "", ""][:2])
    return "shape", f"shapes that fit {one}", other, f"bring both sides to one shape: one is {one}, the other {other}"


def _reshape(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    advice = "compute the shape from the input and keep the batch axis: x.reshape(len(x), -1)"
    return "shape", f"as many values as shape {found['shape']} holds", f"{found['size']} values", advice


def _index(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    index, size = found["index"], int(found["size"])
    return "index", f"indices 0 to {size - 1}", f"index {index}", "give the table or the output one row per class or token"


def _index_type(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    return "dtype", "integers", "an array of another type", "convert the indices: y.astype(np.int64)"


def _casting(found: re.Match[str], shapes: dict[str, tuple[int, ...]]) -> Told:
    advice = f"create the array as float: .astype(np.{found['from']})"
    return "dtype", found["from"], found["to"], advice


# Read off NumPy 1.26 to 2.4.
PATTERNS: tuple[tuple[str, Callable[[re.Match[str], dict[str, tuple[int, ...]]], Told]], ...] = (
    (r"matmul: .*size (?P<right>\d+) is different from (?P<left>\d+)", _matmul),
    (r"shapes \((?P<left>[^)]*)\) and \((?P<right>[^)]*)\) not aligned", _dot),
    (r"could not be broadcast together with (?:remapped )?shapes (?P<shapes>(?:\([^)]*\)\s*)+)", _broadcast),
    (r"could not broadcast input array from shape (?P<shapes>\([^)]*\) into shape \([^)]*\))", _broadcast),
    (r"cannot reshape array of size (?P<size>\d+) into shape (?P<shape>\([^)]*\))", _reshape),
    (r"index (?P<index>-?\d+) is out of bounds for axis \d+ with size (?P<size>\d+)", _index),
    (r"arrays used as indices must be of integer", _index_type),
    (r"Cannot cast ufunc '\w+' output from dtype\('(?P<from>\w+)'\) to dtype\('(?P<to>\w+)'\)", _casting),
)


def _shapes(trace: TracebackType | None) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays in the innermost frame of the user's."""
    shapes: dict[str, tuple[int, ...]] = {}
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            shapes = {k: v.shape for k, v in trace.tb_frame.f_locals.items() if isinstance(v, np.ndarray)}
        trace = trace.tb_next
    return shapes


def _named(shapes: dict[str, tuple[int, ...]], fits: Callable[[tuple[int, ...]], bool]) -> str | None:
    return next((f"{name} of shape {shape}" for name, shape in shapes.items() if fits(shape)), None)
