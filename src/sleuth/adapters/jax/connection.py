"""Which parameters the loss reaches, and where the way is cut: read off the traced step, nothing is computed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import jax.numpy as jnp

from sleuth.adapters.jax.tape import Entry
from sleuth.adapters.jax.trace import Trace
from sleuth.core.trial import Connection, Cut

# Their slope is zero everywhere.
FLAT = {"sign", "floor", "ceil", "round", "stop_gradient", "argmax", "argmin", "is_finite", "pure_callback", "io_callback"}


@dataclass
class Trail:
    """What a value depends on: parameters that a gradient reaches, and those behind cuts, by the number of the cut."""

    alive: frozenset[str] = frozenset()
    cuts: dict[int, frozenset[str]] = field(default_factory=dict)


def trails(trace: Trace) -> dict[int, Trail]:
    known: dict[int, Trail] = {slot: Trail(frozenset({path})) for slot, path in trace.weights.items()}
    for number, entry in enumerate(trace.tape.entries):
        before = [known[slot] for slot in trace.tape.sources(entry) if slot in known]
        if not before:
            continue
        alive = frozenset().union(*(trail.alive for trail in before))
        cuts: dict[int, frozenset[str]] = {}
        for trail in before:
            for cut, roots in trail.cuts.items():
                cuts[cut] = cuts.get(cut, frozenset()) | roots
        for slot in entry.outputs:
            passes = entry.name not in FLAT and jnp.issubdtype(trace.tape.dtypes[slot], jnp.inexact)
            known[slot] = Trail(alive, cuts) if passes else Trail(frozenset(), {**cuts, number: alive} if alive else cuts)
    return known


def reached(trace: Trace) -> frozenset[str]:
    value = trace.value
    return trails(trace).get(value, Trail()).alive if isinstance(value, int) else frozenset()


def connection(trace: Trace, paths: tuple[str, ...], layers: dict[str, str]) -> Connection:
    """`layers`: of each parameter, the layer that holds it."""
    value = trace.value
    trail = trails(trace).get(value, Trail()) if isinstance(value, int) else Trail()
    missing = tuple(path for path in paths if path not in trail.alive)
    called = {visit.path for visit in trace.marks.visits}
    unused = dict.fromkeys(layers[p] for p in missing if layers.get(p) and layers[p] not in called and called - {""})
    return Connection(
        parameters=len(paths),
        without_gradient=missing,
        cuts=tuple(_cuts(trace, trail, missing)),
        unused_layers=tuple(unused),
        error=None if len(missing) < len(paths) else "the loss depends on no parameter",
        custom=tuple(sorted(trace.tape.custom)),
        custom_lines=tuple(line for _, line in sorted(trace.tape.custom.items()) if line is not None),
    )


def _cuts(trace: Trace, trail: Trail, missing: tuple[str, ...]) -> Iterator[Cut]:
    for number, roots in sorted(trail.cuts.items()):
        behind = tuple(path for path in missing if path in roots)
        entry = trace.tape.entries[number]
        if behind:
            yield Cut(_operation(entry), _layer(trace, entry), entry.location, True, behind)


def _operation(entry: Entry) -> str:
    return entry.name if entry.name == "stop_gradient" else entry.called or entry.name


def _layer(trace: Trace, entry: Entry) -> str | None:
    return (trace.marks.visits[entry.visits[-1]].path or None) if entry.visits else None
