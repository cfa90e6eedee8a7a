"""A traced pass, cut into what each layer does itself: each piece is a function of the values that it got in the pass."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from sleuth.adapters.jax.inspecting.counting import flops
from sleuth.adapters.jax.tape import OPENED, Entry, read, run
from sleuth.adapters.jax.trace import Trace
from sleuth.adapters.jax.words import family_of

# Marks of ours: they compute nothing.
MARK = "name"


@dataclass
class Piece:
    """`path` is "" for what the model does outside of its layers, and for the loss."""

    path: str
    kind: str
    family: str
    entries: list[Entry] = field(default_factory=list)
    calls: int = 1
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    @property
    def flops(self) -> int:
        return sum(flops(entry.equation) or 0 for entry in self.entries)

    @property
    def operations(self) -> int:
        return sum(operations(entry.equation) for entry in self.entries)

    def function(self) -> Callable[..., list[Any]]:
        """Of `inputs`, in that order."""

        def compute(*given: Any) -> list[Any]:
            values: dict[int, Any] = dict(zip(self.inputs, given, strict=True))
            for entry in self.entries:
                made = run(entry, [read(values, atom) for atom in entry.inputs])  # type: ignore[arg-type]
                values.update(zip(entry.outputs, made, strict=True))
            return [values[slot] for slot in self.outputs]

        return compute

    def backward(self) -> Callable[..., Any]:
        """Results and gradients of these by whatever can have one."""
        compute = self.function()

        def differentiate(*given: Any) -> Any:
            smooth = [i for i, array in enumerate(given) if jnp.issubdtype(array.dtype, jnp.floating)]

            def moved(*arrays: Any) -> list[Any]:
                full = list(given)
                for i, array in zip(smooth, arrays, strict=True):
                    full[i] = array
                return [made for made in compute(*full) if jnp.issubdtype(made.dtype, jnp.floating)]

            made, pull = jax.vjp(moved, *(given[i] for i in smooth))
            return made, pull([jnp.ones_like(array) for array in made])

        return differentiate


def pieces(trace: Trace, kind: str) -> list[Piece]:
    """In the order in which they come first. `kind`: of the model as a whole."""
    found: dict[str, Piece] = {"": Piece("", kind, "other")}
    visits = trace.marks.visits
    calls = Counter(visit.path for visit in visits if visit.module is not None)
    for entry in trace.tape.entries:
        layer = next((visits[n] for n in reversed(entry.visits) if visits[n].module is not None), None)
        path = "" if layer is None else layer.path
        if path not in found and layer is not None:
            found[path] = Piece(path, type(layer.module).__name__, family_of(layer.module), calls=calls[path])
        found[path].entries.append(entry)
    _cut(found, trace)
    return list(found.values())


def _cut(found: dict[str, Piece], trace: Trace) -> None:
    """What a piece is given is made elsewhere; what it puts out is used elsewhere."""
    makers = {slot: path for path, piece in found.items() for entry in piece.entries for slot in entry.outputs}
    used: dict[str, dict[int, None]] = {path: {} for path in found}
    for path, piece in found.items():
        for slot in (atom for entry in piece.entries for atom in trace.tape.sources(entry)):
            if makers.get(slot) != path:
                used[path][slot] = None
    for path, slots in used.items():
        found[path].inputs = list(slots)
        for slot in slots:
            if slot in makers and slot not in found[makers[slot]].outputs:
                found[makers[slot]].outputs.append(slot)
    for atom in trace.tape.outputs:
        if isinstance(atom, int) and atom in makers:
            found[makers[atom]].outputs.append(atom)


def operations(equation: Any) -> int:
    """A loop calls what is in it once a round."""
    name, params = equation.primitive.name, equation.params
    if name == MARK:
        return 0
    if name == "scan":
        return int(params["length"]) * of_body(params["jaxpr"])
    if name == "while":
        return of_body(params["body_jaxpr"])
    if name == "cond":
        return max(of_body(branch) for branch in params["branches"])
    inner = params.get(OPENED.get(name, ""))
    return 1 if inner is None else of_body(inner)


def of_body(body: Any) -> int:
    return sum(operations(equation) for equation in getattr(body, "jaxpr", body).eqns)
