"""What an exception of a traced forward, loss or backward really says."""

import re
from collections.abc import Callable

from sleuth.core.location import Location
from sleuth.core.observation import Failure
from sleuth.core.runtime.place import location_of

Told = tuple[str, str | None, str | None, str | None]  # kind, expected, got, advice


def explain(error: Exception, phase: str, layer: str | None = None, place: Location | None = None) -> Failure:
    kind, expected, got, advice = _tell(error)
    return Failure(
        phase=phase,
        error=type(error).__name__,
        message=str(error).split("\n--------------------")[0].strip(),
        kind=kind,
        layer=layer,
        expected=expected,
        got=got,
        advice=advice,
        location=place or location_of(error.__traceback__),
    )


def _tell(error: Exception) -> Told:
    if type(error).__name__ == "NotOneNumber":
        return "value", "one number", None, "average the loss over the batch: loss.mean()"
    for pattern, tell in PATTERNS:
        found = re.search(pattern, str(error), re.DOTALL)
        if found:
            return tell(found)
    return KINDS.get(type(error).__name__, "other"), None, None, None


def _dot(found: re.Match[str]) -> Told:
    left, right = _numbers(found["left"]), _numbers(found["right"])
    return _widths(left[-1] if left else "?", right[0] if right else "?")


def _contracting(found: re.Match[str]) -> Told:
    return _widths(found["left"], found["right"])


def _widths(got: str, expected: str) -> Told:
    advice = (
        f"make the layer take {got} features instead of {expected}, or reshape the input: its last axis must be {expected} long"
    )
    return "shape", f"{expected} features", f"{got} features", advice


def _broadcast(found: re.Match[str]) -> Told:
    shapes = re.findall(r"\([\d, ]*\)", found[0])
    one, other = [*shapes, "?", "?"][:2]
    return "shape", f"shapes that fit {one}", other, f"bring both sides to one shape: one is {one}, the other {other}"


def _reshape(found: re.Match[str]) -> Told:
    advice = "compute the shape from the input and keep the batch axis: x.reshape(len(x), -1)"
    return "shape", None, None, advice


def _traced(found: re.Match[str]) -> Told:
    advice = (
        "keep Python's if, while, int() and float() off traced values: use jnp.where, jax.lax.cond, or mark the argument static"
    )
    return "type", None, None, advice


def _not_scalar(found: re.Match[str]) -> Told:
    shape = found["shape"] or "?"
    return "value", "one number", f"an array of shape {shape}", "average the loss over the batch: loss.mean()"


def _endless(found: re.Match[str]) -> Told:
    advice = "JAX cannot go backward through a loop of unknown length: use jax.lax.scan, or fori_loop with fixed bounds"
    return "value", "a loop whose length is known", "while_loop", advice


def _whole_weights(found: re.Match[str]) -> Told:
    kind = found["kind"] or "whole numbers"
    return "dtype", "floating-point parameters", kind, "make the parameters floats, or take the gradient by the others only"


def _leaked(found: re.Match[str]) -> Told:
    advice = (
        "return from the compiled function what is needed outside of it: a value stored in a list, a global or self while it is "
        "traced stands for no number"
    )
    return "type", None, None, advice


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


KINDS = {"IndexError": "index", "KeyError": "key", "NameError": "name", "AttributeError": "name"}
PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Told]], ...] = (
    (r"Gradient only defined for scalar-output functions\. Output (?:had shape: (?P<shape>\([\d, ]*\)))?", _not_scalar),
    (r"Reverse-mode differentiation does not work for lax\.(?:while_loop|fori_loop)", _endless),
    (r"grad requires real- or complex-valued inputs .*?got (?P<kind>\w+)", _whole_weights),
    (r"(?:UnexpectedTracerError|leaked trace|unexpected tracer|escaped)", _leaked),
    (r"Input type must be an integer", lambda found: ("dtype", "whole numbers", "floats", "give the embedding whole numbers")),
    (r"contracting dimensions to have the same shape, got \(?(?P<left>\d+)[,)]* ?\)? and \(?(?P<right>\d+)", _contracting),
    (r"(?P<left>\([\d, ]*\))[^()]*(?P<right>\([\d, ]*\)).*(?:contract|matmul|dot)", _dot),
    (r"(?:[Ii]ncompatible shapes for broadcasting|must have equal|got incompatible shapes|equal shapes).*", _broadcast),
    (r"(?:cannot reshape|reshape total size|Cannot reshape).*", _reshape),
    (r"(?:Attempted boolean conversion|ConcretizationTypeError|traced array|TracerArrayConversion)", _traced),
    (r"(?:[Ss]hape|dimension)", lambda found: ("shape", None, None, None)),
    (r"dtype", lambda found: ("dtype", None, None, None)),
    (r"(?:required positional argument|unexpected keyword)", lambda found: ("arguments", None, None, None)),
)
