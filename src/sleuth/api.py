"""The public functions: the only place that wires the parts together."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.core.contract.adapter import Replays
from sleuth.core.contract.scene import Replayed, Scene
from sleuth.core.diagnosis import diagnose
from sleuth.core.engine import Engine
from sleuth.core.errors import UnusableInput
from sleuth.core.finding import Finding
from sleuth.core.history import Seen
from sleuth.core.observation import Crash, Drawing, LossCall, Role, Step
from sleuth.core.recording.facts import facts_of
from sleuth.core.recording.remembered import Remembered
from sleuth.core.report import Report
from sleuth.core.settings import Configuration, parse_configuration, read_configuration
from sleuth.core.subject import Subject

if TYPE_CHECKING:
    from sleuth.acting import OnError
    from sleuth.core.contract.expectation import Expect
    from sleuth.core.recording.recording import Recording
    from sleuth.live import Watch
    from sleuth.store.reading import Run

__all__ = ["Subject", "UnusableInput", "examine", "examine_subject", "load", "replay", "scene", "watch"]

RUNS = Path(".sleuth") / "runs"


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
    from sleuth.acting import require_on_error
    from sleuth.adapters import adapter_for
    from sleuth.checks import all_checks
    from sleuth.live import Watch

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
        _watch_report,
        every=every,
        overhead=overhead,
        folder=folder,
        quiet=quiet,
        name=name,
        on_error=on_error,
        assert_finite=assert_finite,
        assertions=assertions,
    ).open()


def _watch_report(engine: Engine, watched: "Watch") -> Report:
    from sleuth.store.arrays import StoredRun

    return build_report(
        engine,
        source="watch",
        framework=watched.adapter.name,
        subject=watched.name,
        seconds=watched.seconds,
        notes=watched.notes,
        overhead=watched.overhead,
        record=None if watched.file is None else StoredRun(watched.file),
    )


def new_folder(directory: Path, name: str) -> Path:
    """Of its own also when a second watch of this process begins in the same second."""
    wanted = directory / f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name(name)}-{os.getpid()}"
    for number in count(2):
        try:
            wanted.mkdir(parents=True)
        except FileExistsError:
            if not wanted.is_dir():  # something else is in the way: whoever writes there says so
                return wanted
            wanted = wanted.with_name(f"{wanted.name.split('.')[0]}.{number}")
        except OSError:
            return wanted
        else:
            return wanted
    raise AssertionError("numbers do not end")


def file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]


def build_report(
    engine: Engine,
    *,
    source: str,
    framework: str | None,
    subject: str,
    seconds: float,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
    overhead: Mapping[str, float] | None = None,
    record: "Recording | None" = None,
) -> Report:
    from sleuth.views import VIEWS

    judgement = engine.judge()
    culprits = diagnose(_worded(judgement.findings, engine, framework), {c.name: c.explains for c in engine.checks})
    findings = tuple(f for culprit in culprits for f in (culprit.finding, *culprit.symptoms))
    seen = engine.history
    crashes = Seen(seen).all(Crash)
    return Report(
        source=source,
        framework=framework,
        subject=subject,
        steps=seen.count(Step),
        seconds=seconds,
        culprits=culprits,
        findings=findings,
        clear=judgement.clear,
        not_examined=judgement.not_examined,
        ignored=judgement.ignored,
        ignored_at=judgement.ignored_at,
        stage_of={c.name: c.stage for c in engine.checks},
        # A script that died has not shown that it trains.
        examined_anything=any(seen.has(what) for what in (Role.ACTIVATION, LossCall, Step)) and not crashes,
        overhead=overhead,
        notes=(*(crash.note for crash in crashes), *notes),
        facts={**facts_of(seen), **(facts or {})},
        views=VIEWS,
        record=record,
        remembered=Remembered(seen),
        drawing=next((d.svg for d in Seen(seen).all(Drawing)), ""),
    )


def _worded(findings: Iterable[Finding], engine: Engine, framework: str | None) -> list[Finding]:
    from sleuth.adapters import in_words_of

    usual = {c.name: c.fix for c in engine.checks}
    return [replace(f, fix=in_words_of(framework, f.name, f.fix, usual.get(f.name, ""))) for f in findings]


def configured(select: list[str] | None, ignore: Mapping[str, str] | None) -> Configuration:
    from sleuth.checks import all_checks

    checks = all_checks()
    stored = read_configuration(Path.cwd(), checks)
    given = parse_configuration({"select": select or [], "ignore": ignore or {}}, checks, "examine()")
    return Configuration(given.select or stored.select, {**stored.ignore, **given.ignore}, stored.thresholds)


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
