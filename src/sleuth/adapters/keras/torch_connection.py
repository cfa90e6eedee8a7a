"""Where the graph between the variables and the loss is cut, on Keras' torch backend."""

import torch

from sleuth.adapters.keras.bench import KerasBench
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.sides import quiet
from sleuth.adapters.keras.torch_ops import KerasListener
from sleuth.adapters.torch.cuts import CutNotes, cuts_of
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection


def connection(bench: KerasBench, batch: Parts) -> Connection:
    """One step op by op, and its backward."""
    native = bench.native(batch)
    hearing = Hearing(bench.model)
    notes = CutNotes(KerasListener(hearing), bench.model)
    values = {path: bench.parameter(path) for path in bench.paths()}
    for value in values.values():
        value.grad = None
    with quiet(), torch.enable_grad(), hearing.listening(), notes.listening():
        loss = bench.compute(native)
    error = None if loss.requires_grad else "nothing that the loss was computed from needs a gradient"
    if error is None:
        loss.backward()
    trail = notes.trail(loss)
    flat = set().union(*(notes.found[i].roots for i in trail.cuts if notes.found[i].flat))
    missing = {id(p): path for path, p in values.items() if p.grad is None or (id(p) in flat and not p.grad.any())}
    unused = {path.rpartition(".")[0] for i, path in missing.items() if i not in notes.touched}
    for value in values.values():
        value.grad = None
    return Connection(
        parameters=len(values),
        without_gradient=tuple(missing.values()),
        cuts=tuple(cuts_of(notes, trail, missing)),
        unused_layers=tuple(sorted(unused)),
        error=error,
        custom=tuple(sorted(set(notes.custom))),
    )
