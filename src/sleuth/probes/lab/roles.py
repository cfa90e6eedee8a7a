"""With a step of the user's own: which arrays of a batch are inputs and which are targets, seen by running it once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts, Usage, take_apart
from sleuth.probes.lab.probe import Lab

Split = Callable[[Any], tuple[Any, Any]]


def observe_roles(lab: Lab, raw: Any) -> None:
    """Sets the subject's split to what the step shows: then nobody need guess from the batch's form."""
    subject = lab.subject
    if subject.step is None or subject.split is not None or lab.bench_ is None:
        return
    guess = take_apart(raw)
    usage = _usage(lab, guess)
    if usage is not None:
        lab.subject = replace(subject, split=_as_guessed if usage == _guessed(lab, guess) else _split(lab, usage))


def _as_guessed(raw: Any) -> tuple[Any, Any]:
    parts = take_apart(raw)
    return parts.inputs, parts.target


def _usage(lab: Lab, guess: Parts) -> Usage | None:
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(True)
        return lab.bench.usage(guess)
    except Exception:  # whatever the step raises, the first pass will say
        return None
    finally:
        lab.bench.restore(start)


def _guessed(lab: Lab, guess: Parts) -> Usage:
    paths = {id(a): path for path, a in leaves(guess.raw, lab.adapter.is_array)}

    def of(tree: Any) -> tuple[str, ...]:
        return tuple(sorted(paths.get(id(a), "") for _, a in leaves(tree, lab.adapter.is_array)))

    return Usage(of(guess.inputs), of(guess.target))


def _split(lab: Lab, usage: Usage) -> Split:
    def pick(found: dict[str, Any], paths: tuple[str, ...]) -> Any:
        chosen = {path: found[path] for path in paths if path in found}
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen or None

    def split(raw: Any) -> tuple[Any, Any]:
        found = dict(leaves(raw, lab.adapter.is_array))
        return pick(found, usage.inputs), pick(found, usage.targets)

    return split


def answers(lab: Lab, batch: Parts) -> Any:
    """What the model returns for a batch, as the user's training calls it; a tuple where that calls it several times."""
    if lab.subject.step is None:
        return lab.bench.forward(batch.inputs)
    heard = lab.bench.outputs(batch)
    return heard[0] if len(heard) == 1 else heard


def with_inputs(lab: Lab, batch: Parts, inputs: Any) -> Parts:
    """The batch with other inputs, also in the raw batch that a step reads. Where there are fewer samples now, the other
    arrays are cut to as many."""
    is_array = lab.adapter.is_array
    old = [a for _, a in leaves(batch.inputs, is_array)]
    new = [a for _, a in leaves(inputs, is_array)]
    fresh = {id(a): b for a, b in zip(old, new, strict=True)}
    sizes = {(a.shape[0], b.shape[0]) for a, b in zip(old, new, strict=True) if len(a.shape) and len(b.shape)}
    before, after = next(iter(sizes)) if len(sizes) == 1 else (0, 0)

    if lab.subject.step is not None and not fresh.keys() <= {id(a) for _, a in leaves(batch.raw, is_array)}:
        raise Unsupported("the inputs that split= gives are not the arrays that step= reads from the batch")

    def change(array: Any) -> Any:
        if id(array) in fresh:
            return fresh[id(array)]
        shorter = after < before and len(array.shape) and array.shape[0] == before
        return array[:after] if shorter else array

    return Parts(inputs, *(map_arrays(part, change, is_array) for part in (batch.target, batch.raw)))
