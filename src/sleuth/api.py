"""The public functions: the only place that wires the parts together."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sleuth.core.diagnosis import diagnose
from sleuth.core.engine import Engine
from sleuth.core.errors import UnusableInput
from sleuth.core.facts import facts_of
from sleuth.core.observation import LossCall, Role, Step
from sleuth.core.report import Report
from sleuth.core.settings import Configuration, parse_configuration, read_configuration
from sleuth.core.subject import Subject

__all__ = ["Subject", "UnusableInput", "examine", "examine_subject", "load"]


def examine(
    model: Any,
    train: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    validation: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    name: str = "",
    budget_seconds: float = 60.0,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Report:
    """Examine a training that is not running yet: data, model, one batch, a short trial, hyperparameters.

    Nothing of the user's is changed. `train` and `validation` are a loader, a dataset, any iterable of batches or arrays
    `(X, y)`. `split` maps a batch to (inputs, target) where the default cannot tell. Instead of `loss(output, target)`,
    `step(model, batch)` may return the loss. `ignore` maps a check's name to the reason for ignoring it.
    """
    if isinstance(model, Subject):
        subject = model
    else:
        subject = Subject(model, train, loss, optimizer, validation, step, split, name or type(model).__name__)
    return examine_subject(subject, budget_seconds=budget_seconds, select=select, ignore=ignore, progress=progress)


def examine_subject(
    subject: Subject,
    *,
    budget_seconds: float = 60.0,
    select: list[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    progress: bool | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    # Imported here: `import sleuth` stays fast and touches no framework.
    from sleuth.adapters import adapter_for
    from sleuth.checks import all_checks
    from sleuth.probes.examination import examine_all
    from sleuth.probes.probe import Lab
    from sleuth.views import progress as progress_view

    if budget_seconds <= 0:
        raise UnusableInput(f"budget_seconds={budget_seconds:g} leaves no time; give at least a few seconds (the default is 60).")
    adapter = adapter_for(subject.model)
    configuration = _configuration(select, ignore)
    engine = Engine(all_checks(), configuration)
    with progress_view.shown(progress) as tell:
        lab = Lab(subject, adapter, budget_seconds, clock, progress=tell)
        examine_all(lab, engine.emit)
    return build_report(
        engine,
        source="examine",
        framework=adapter.name,
        subject=subject.name or type(subject.model).__name__,
        seconds=clock() - lab.started,
        notes=tuple(lab.notes),
        facts={**lab.facts, "read": lab.amount_read()},
    )


def build_report(
    engine: Engine,
    *,
    source: str,
    framework: str | None,
    subject: str,
    seconds: float,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Report:
    from sleuth.views import VIEWS

    judgement = engine.judge()
    culprits = diagnose(judgement.findings, {c.name: c.explains for c in engine.checks})
    findings = tuple(f for culprit in culprits for f in (culprit.finding, *culprit.symptoms))
    seen = engine.history
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
        stage_of={c.name: c.stage for c in engine.checks},
        examined_anything=any(seen.has(what) for what in (Role.ACTIVATION, LossCall, Step)),
        notes=notes,
        facts={**facts_of(seen), **(facts or {})},
        views=VIEWS,
    )


def _configuration(select: list[str] | None, ignore: Mapping[str, str] | None) -> Configuration:
    from sleuth.checks import all_checks

    checks = all_checks()
    stored = read_configuration(Path.cwd(), checks)
    given = parse_configuration({"select": select or [], "ignore": ignore or {}}, checks, "examine()")
    return Configuration(given.select or stored.select, {**stored.ignore, **given.ignore}, stored.thresholds)


def load(path: str | Path) -> Report:
    """A report that was saved as JSON."""
    from sleuth.core.saved import read_report
    from sleuth.views import VIEWS

    return read_report(Path(path), VIEWS)
