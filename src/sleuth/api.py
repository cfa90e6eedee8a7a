"""The public functions: the only place that wires the parts together."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.core.contract.adapter import Replays
from sleuth.core.contract.scene import Replayed, Scene
from sleuth.core.engine import Engine
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Step
from sleuth.core.report import Report
from sleuth.core.subject import Subject
from sleuth.session.report import build_report, configured
from sleuth.session.run_folder import RUNS, new_folder

if TYPE_CHECKING:
    from sleuth.core.contract.expectation import Expect
    from sleuth.session.on_error import OnError
    from sleuth.session.watch import Watch
    from sleuth.store.reading import Run

__all__ = ["Subject", "UnusableInput", "examine", "examine_subject", "load", "replay", "scene", "watch"]


def examine(
    model: Any,
    train: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    validation: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    update: Callable[..., Any] | None = None,
    name: str = "",
    reference: Any = None,
    checkpoint: tuple[Callable[..., Any], Callable[..., None]] | None = None,
    prefixes: bool = False,
    budget_seconds: float = 60.0,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Report:
    """Examine a training that is not running yet: data, model, one batch, a short trial, hyperparameters.

    Nothing of the user's is changed. `train` and `validation` are a loader, a dataset, any iterable of batches or arrays
    `(X, y)`. `split` maps a batch to (inputs, target) where the default cannot tell. Instead of `loss(output, target)`,
    `step(model, batch)` may return the loss. `ignore` maps a check's name to the reason for ignoring it. `reference` is the same
    model elsewhere, in any framework: the two are compared. `checkpoint` is how you save and load, `(save, load)`: what
    `save(model, optimizer)` returns is given to `load(saved, model, optimizer)`. `prefixes=True` also looks at the model as it
    grows, layer by layer: what comes out, and how much of the target can still be read off it.

    Of a network written by hand, `model` may be its weights, a dict or list of NumPy arrays, with the functions `forward`,
    `backward` and `update` beside it: see `sleuth.ByHand`.
    """
    if forward is not None or backward is not None or update is not None:
        from sleuth.adapters.numpy.forms.functions import ByHand

        model, step = ByHand(model, forward=forward, backward=backward, update=update, step=step), None
    if isinstance(model, Subject):
        subject = model
    else:
        subject = Subject(
            model, train, loss, optimizer, validation, step, split, name or type(model).__name__, reference, checkpoint
        )
    return examine_subject(
        subject, prefixes=prefixes, budget_seconds=budget_seconds, select=select, ignore=ignore, progress=progress
    )


def examine_subject(
    subject: Subject,
    *,
    prefixes: bool = False,
    budget_seconds: float = 60.0,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    progress: bool | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    # Imported here: `import sleuth` stays fast and touches no framework.
    from sleuth.adapters import adapter_for
    from sleuth.checks import all_checks
    from sleuth.instruments.graph import drawing_of
    from sleuth.probes.lab.examination import examine_all
    from sleuth.probes.lab.probe import Lab
    from sleuth.views import progress as progress_view

    if budget_seconds <= 0:
        raise UnusableInput(f"budget_seconds={budget_seconds:g} leaves no time; give at least a few seconds (the default is 60).")
    adapter = adapter_for(subject.model)
    configuration = configured(select, ignore)
    engine = Engine(all_checks(), configuration)
    with progress_view.shown(progress) as tell:
        lab = Lab(subject, adapter, budget_seconds, clock, progress=tell, thresholds=configuration.thresholds, grows=prefixes)
        if subject.reference is not None:
            twin = subject.reference if isinstance(subject.reference, Subject) else Subject(subject.reference, None)
            lab.reference = adapter_for(twin.model), twin
        examine_all(lab, engine.emit)
        tell("Drawing the model")
        can_be_called = lab.train.batches and "forward" not in lab.failed
        if can_be_called and (drawing := drawing_of(subject.model, lab.batch.inputs)) is not None:
            engine.emit(drawing)
    return build_report(
        engine,
        source="examine",
        framework=adapter.name,
        subject=subject.name or type(subject.model).__name__,
        seconds=clock() - lab.started,
        notes=tuple(lab.notes),
        facts={**lab.facts, "read": lab.amount_read()},
    )


def watch(
    model: Any,
    optimizer: Any = None,
    *,
    every: int | None = None,
    overhead: float = 0.02,
    name: str = "",
    directory: str | Path | None = RUNS,
    quiet: bool = False,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    on_error: "OnError" = "report",
    assert_finite: bool = False,
    assertions: "Mapping[str, Expect] | None" = None,
) -> "Watch":
    """Watch a training loop: `with sleuth.watch(model, optimizer) as w:` around it, or `w = sleuth.watch(…)` … `w.close()`.

    Nothing in the loop changes. `optimizer` may be a list of several. Some steps are looked at in full, as many as keep the cost
    below the share `overhead` of the training's time; `every=1` looks at each. The run is kept in a folder of its own below
    `directory`; None keeps nothing. `w.report()` works at any time, `w.log(val_loss=…)` adds what only you know.

    `on_error` says what happens at the first finding of each kind that is an error: "report" keeps it for the report, "warn" also
    prints one line at once, "stop" raises `sleuth.Stopped` from `optimizer.step()` before weights are written; a function is
    called with the `Finding` there, on the training's own thread, and what it raises comes through. A loss or gradient that is
    not finite is met at that very step ("stop" and `assert_finite` look at every gradient, else a few speak for all), anything
    else at the step after a check found it. `assert_finite` also looks at every layer's output. `assertions` maps patterns of
    layer names to what their outputs must be, such as `{"encoder.*": sleuth.Expect(shape=(None, 64), low=-10, high=10)}`; one
    that breaks is noted in the report, and under "stop" the layer's call raises `sleuth.Violated`.
    """
    from sleuth.adapters import adapter_for
    from sleuth.checks import all_checks
    from sleuth.session.on_error import require_on_error
    from sleuth.session.watch import Watch

    if every is not None and every < 1:
        raise UnusableInput(f"every={every} is not a number of steps; give 1 for every step, or None to let sleuth choose.")
    if not 0 < overhead < 1:
        raise UnusableInput(f"overhead={overhead:g} is not a share of the time; 0.02 allows two percent.")
    require_on_error(on_error)
    optimisers = list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer] if optimizer is not None else []
    adapter = adapter_for(model)
    name = name or type(model).__name__
    folder = None if directory is None else new_folder(Path(directory), name)
    engine = Engine(all_checks(), configured(select, ignore))
    return Watch(
        adapter,
        model,
        optimisers,
        engine,
        every=every,
        overhead=overhead,
        folder=folder,
        quiet=quiet,
        name=name,
        on_error=on_error,
        assert_finite=assert_finite,
        assertions=assertions,
    ).open()


def load(path: str | Path) -> Report:
    """A report that was saved as JSON, or a run that was recorded: its folder or its file.

    A run is judged anew from what was recorded, by the checks and settings of now.
    """
    from sleuth.core.recording.saved import read_report
    from sleuth.views import VIEWS

    path = Path(path)
    if path.is_dir() or path.suffix == ".sqlite":
        return _replay(path)
    return read_report(path, VIEWS)


def _replay(path: Path) -> Report:
    from sleuth.checks import all_checks
    from sleuth.store.arrays import StoredRun
    from sleuth.store.reading import Run, files_of

    file, *others = files_of(path)
    engine = Engine(all_checks(), configured(None, None))
    with Run(file) as run:
        run.recall(engine.history)
    about = run.about
    return build_report(
        engine,
        source="replay",
        framework=about.framework,
        subject=about.subject or path.name,
        seconds=about.seconds,
        notes=(*about.notes, *_notes_on(run, others, engine.history.count(Step))),
        overhead=about.overhead,
        record=StoredRun(file),
    )


def _notes_on(run: "Run", others: list[Path], steps: int) -> Iterator[str]:
    if not run.about.ended:
        yield f"the run did not come to its end, or is still going on: what is here was written up to step {steps}"
    if run.unknown:
        yield f"what this sleuth does not know was left out: {', '.join(f'{n} {kind}' for kind, n in run.unknown.items())}"
    if others:
        names = ", ".join(file.name for file in others)
        yield f"this is {run.path.name} of {len(others) + 1} processes; sleuth.load(FILE) shows one of the others: {names}"


def scene(run: str | Path, number: int = 1) -> Scene:
    """A step that a watch kept whole because something went wrong in it. `run`: the run's folder."""
    from sleuth.store.scenes import read_scene

    return read_scene(Path(run), number)


def replay(kept: Scene, model: Any, *, loss: Callable[..., Any] | None = None) -> Replayed:
    """Does a scene's step again, op by op: `sleuth.replay(sleuth.scene(RUN, 1), build())`.

    `model` is built as it was, or a `sleuth.Subject`; it is given the scene's weights. Where no `loss(output, target)` is given,
    the loss functions that were heard are called again.
    """
    from sleuth.adapters import adapter_for

    subject = model if isinstance(model, Subject) else Subject(model, None, loss)
    adapter = adapter_for(subject.model)
    if not isinstance(adapter, Replays) or adapter.name != kept.facts["framework"]:
        raise UnusableInput(f"the scene is of {kept.facts['framework']}; a model of {adapter.name} cannot do it again.")
    return adapter.replay(subject, kept)
