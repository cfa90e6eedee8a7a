"""The time of each layer, compiled by itself and run on what it got in the pass."""

import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.profiling.pieces import Piece, pieces
from sleuth.core.contract.workload import LayerWork
from sleuth.core.subject import Parts

# The way into a program and back is the same for each.
EMPTY_RUNS = 20


def work(bench: JaxBench, batch: Parts, repeats: int, *, backward: bool = False) -> tuple[LayerWork, ...]:
    """Without repeats nothing is compiled, and all is counted."""
    trace = bench.trace(batch)
    found = pieces(trace, type(bench.subject.model).__name__)
    if not repeats:
        return tuple(_counted(piece) for piece in found)
    given = list(dict.fromkeys(slot for piece in found for slot in piece.inputs))
    values = dict(zip(given, trace.values(bench, bench.arrays(batch), given), strict=True))
    way = quickest(bench, ("empty",), lambda x: x + 1, (jnp.zeros(()),), EMPTY_RUNS)
    timed = [
        _timed(bench, ("piece", id(trace), piece.path), piece, [values[slot] for slot in piece.inputs], repeats, way, backward)
        for piece in found
    ]
    return _filled_in(timed) if backward else tuple(w for w, _ in timed)


def quickest(bench: JaxBench, name: Any, function: Any, given: Any, repeats: int) -> float:
    """Whatever else the machine does only makes a run slower. The first one is no measure."""
    executable, flat, _ = bench.programs.ready(name, function, *given)
    jax.block_until_ready(executable(*flat))
    return min(spent(executable, flat) for _ in range(max(repeats, 1)))


def spent(executable: Any, flat: list[Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(executable(*flat))
    return time.perf_counter() - began


def _timed(
    bench: JaxBench, name: Any, piece: Piece, given: list[Any], repeats: int, way: float, backward: bool
) -> tuple[LayerWork, bool]:
    """And whether its backward could be run by itself."""
    forward = quickest(bench, name, piece.function(), given, repeats) if piece.outputs else way
    found = replace(_counted(piece), forward=max(forward - way, 0.0))
    if not backward or not piece.outputs:
        return found, True
    try:
        both = quickest(bench, (*name, "backward"), piece.backward(), given, repeats)
    except Exception:  # a loop of unknown length, or what has a derivative only as a whole
        return found, False
    return replace(found, backward=max(both - forward, 0.0)), True


def _counted(piece: Piece) -> LayerWork:
    return LayerWork(piece.path, piece.kind, piece.family, 0.0, flops=piece.flops, operations=piece.operations, calls=piece.calls)


def _filled_in(timed: list[tuple[LayerWork, bool]]) -> tuple[LayerWork, ...]:
    """A backward that cannot be run alone takes as much of the forward as those of the others do."""
    told = [w for w, known in timed if known]
    share = sum(w.backward for w in told) / (sum(w.forward for w in told) or 1.0)
    return tuple(w if known else replace(w, backward=w.forward * share) for w, known in timed)
