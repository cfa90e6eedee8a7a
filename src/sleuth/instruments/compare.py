"""`sleuth.compare`: the same model in several frameworks, two versions of one, or two recorded runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from sleuth.adapters import adapter_for
from sleuth.comparing import comparison
from sleuth.comparing.comparison import Entry, as_subject
from sleuth.comparing.result import Comparison, require_batch
from sleuth.comparing.side import neutral
from sleuth.core.contract.adapter import Adapter
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Subject, take_apart
from sleuth.instruments.compare_runs import RunComparison, compare_runs


@overload
def compare(a: str | Path, b: str | Path) -> RunComparison: ...
@overload
def compare(
    a: Any,
    b: Any,
    batch: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    names: Mapping[str, str] | None = None,
    carry: bool = True,
    **others: Any,
) -> Comparison: ...


def compare(
    a: Any,
    b: Any,
    batch: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    names: Mapping[str, str] | None = None,
    carry: bool = True,
    **others: Any,
) -> Comparison | RunComparison:
    """Does the same model compute the same elsewhere? Each is a model, a dict (model, loss, optimizer) or a `sleuth.Subject`.

    The weights of `a` are carried over to a copy of each other model, by name, size and layout; then the outputs of the layers,
    the loss, the gradients and one step of the optimiser are compared. The result says where they part first, by how much more
    than rounding explains, and which of the usual reasons makes the difference vanish. Nothing of the user's is changed.

    `batch` is `(inputs, target)` in arrays of any framework; without it, the first batch of the first `train`. `names` maps paths
    of layers in `a` to those in `b` where sizes and order cannot tell. `carry=False`: each keeps its own weights. More models go
    by keyword, `compare(a, b, batch, mlx=c)`. Two folders of runs, `compare(RUN, RUN)`, are compared by what was recorded.
    """
    if isinstance(a, str | Path) and isinstance(b, str | Path):
        return compare_runs(a, b)
    subjects = {"a": as_subject(a), "b": as_subject(b), **{name: as_subject(thing) for name, thing in others.items()}}
    subjects = {name: _with_loss(subject, loss) for name, subject in subjects.items()}
    adapters = {name: adapter_for(subject.model) for name, subject in subjects.items()}
    called = _called(subjects, adapters, tuple(others))
    given = neutral(require_batch(_batch(batch, subjects, adapters)), list(adapters.values()))
    split = next((s.split for s in subjects.values() if s.split is not None), None)
    parts = take_apart(given, split)
    return comparison.compare([Entry(called[n], adapters[n], s, parts) for n, s in subjects.items()], names, carry)


def _with_loss(subject: Subject, loss: Callable[..., Any] | None) -> Subject:
    return replace(subject, loss=loss) if subject.loss is None and subject.step is None and loss is not None else subject


def _called(subjects: Mapping[str, Subject], adapters: Mapping[str, Adapter], given: tuple[str, ...]) -> dict[str, str]:
    """By the name that the user gives, else by the framework, where that tells them apart."""
    frameworks = [adapter.name for adapter in adapters.values()]
    found = {}
    for key, subject in subjects.items():
        own = adapters[key].name
        found[key] = key if key in given else subject.name or (own if frameworks.count(own) == 1 else key)
    return found if len(set(found.values())) == len(found) else {key: key for key in subjects}


def _batch(batch: Any, subjects: Mapping[str, Subject], adapters: Mapping[str, Adapter]) -> Any:
    from sleuth.probes.lab.sources import open_source

    name, source = next(((n, s.train) for n, s in subjects.items() if s.train is not None), ("a", None))
    if batch is not None:
        source = batch
    if source is None or any(next(leaves(source, a.is_array), None) is not None for a in adapters.values()):
        return source
    with adapters[name].preserve(Subject(subjects[name].model, source)):
        found = next(iter(open_source(source, adapters[name], "batch").batches), None)
    if found is None:
        raise UnusableInput("the data that was given as batch is empty.")
    return found
