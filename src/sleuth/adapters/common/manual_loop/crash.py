"""What is behind an exception that ends a loop around a hand-written network."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from sleuth.adapters.common.manual_loop.error_message import explain
from sleuth.adapters.common.refused_weights import differences
from sleuth.core.observation import Crash, Held, Misfit, Observation, OutOfMemory
from sleuth.core.runtime.place import is_users, location_of

ASKED = re.compile(r"Unable to allocate ([\d.]+) ([KMGTP]?i?B)")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
# FunctionKind → in the words of Crash; a backward that is wrong is found in "backward", whoever calls it.
PHASES = {"forward": "forward", "loss": "loss", "backward": "backward", "update": "step", "train_step": "forward"}
# Names of variables that hold what was read from a file.
SAVED = re.compile(r"check_?point|ckpt|saved|state|loaded|archive|npz|pretrained", re.I)


class Network(NamedTuple):
    """The network that was trained."""

    name: str
    weights: Callable[[], Mapping[str, np.ndarray]]
    layer: str | None = None  # in which the exception came up


def explain_crash(error: Exception, fell: str | None, network: Network, step: int) -> list[Observation]:
    """`fell`: what was going on, of the things that are heard."""
    phase = PHASES.get(fell or "")
    lines = str(error).splitlines() or [""]
    found: list[Observation] = [Crash(step, type(error).__name__, lines[0], phase, location_of(error.__traceback__))]
    misfit = _misfit(error, network) if phase is None else None
    if isinstance(error, MemoryError):
        found.append(_memory(error, network, step, phase))
    elif misfit is not None:
        found.append(misfit)
    elif phase in ("forward", "loss", "backward"):
        found.append(explain(error, phase, network.layer))
    return found


def _memory(error: MemoryError, network: Network, step: int, phase: str | None) -> OutOfMemory:
    asked = ASKED.search(str(error))
    weights = list(network.weights().values())
    return OutOfMemory(
        step,
        "cpu",
        asked=None if asked is None else int(float(asked[1]) * UNITS.get(asked[2][0], 1)),
        held=(Held("parameters", sum(a.nbytes for a in weights), len(weights)),),
        largest=tuple(_largest(error.__traceback__)),
        phase=phase,
        layer=network.layer,
        location=location_of(error.__traceback__),
    )


def _largest(trace: TracebackType | None) -> Iterator[Held]:
    """Arrays in the user's variables on the way to the exception."""
    found = {id(v): (k, v) for scope in _scopes(trace) for k, v in scope.items() if isinstance(v, np.ndarray)}
    for name, array in sorted(found.values(), key=lambda pair: -pair[1].nbytes)[:4]:
        yield Held(name, array.nbytes, 1, array.shape)


def _misfit(error: Exception, network: Network) -> Misfit | None:
    """A file of arrays, or a dict under a telling name, that does not have the names or shapes of the weights."""
    if not isinstance(error, KeyError | ValueError):
        return None
    own = {name: array.shape for name, array in network.weights().items()}
    for scope in _scopes(error.__traceback__):
        for name, thing in scope.items():
            held = _saved(name, thing)
            if not held or held == own:
                continue
            place = location_of(error.__traceback__)
            return Misfit("names", network.name, state=name, location=place, **differences(own, held))
    return None


def _saved(name: str, thing: Any) -> dict[str, tuple[int, ...]]:
    is_file = hasattr(thing, "files") and hasattr(thing, "zip")
    if not is_file and not (isinstance(thing, Mapping) and SAVED.search(name)):
        return {}
    try:
        return {str(k): v.shape for k, v in thing.items() if isinstance(v, np.ndarray)}
    except Exception:  # the file may be closed
        return {}


def _scopes(trace: TracebackType | None) -> Iterator[dict[str, Any]]:
    """Variables of the user's own frames, the innermost first."""
    found = []
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found.append(trace.tb_frame.f_locals)
        trace = trace.tb_next
    yield from reversed(found)
