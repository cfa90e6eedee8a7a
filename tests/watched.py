"""A training under watch: torch through `sleuth.watch` itself, others step by step through the engine."""

from itertools import islice, repeat

import torch

import sleuth
from sleuth import Report
from sleuth.adapters import adapter_for
from sleuth.api import build_report
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.observation import Ending, Step
from sleuth.core.subject import Subject, call_model, take_apart
from sleuth.testing import Loop, Training


def watched(built: Training | Loop, **options) -> Report:
    if isinstance(built, Loop):
        return _loop(built, **options)
    if isinstance(built.subject.model, torch.nn.Module):
        return _loop(as_loop(built), **options)
    return _through_the_engine(built)


def as_loop(training: Training) -> Loop:
    """The plainest loop that trains these parts."""
    subject = training.subject
    model, optimiser = subject.model, subject.optimizer

    def run(w: object) -> None:
        model.train()
        for batch in _batches(subject, training.steps):
            optimiser.zero_grad()
            _loss(subject, batch).backward()
            optimiser.step()

    return Loop(model, [optimiser], run)


def _loop(loop: Loop, **options) -> Report:
    settings = {"directory": None, "quiet": True, **loop.options, **options}
    with sleuth.watch(loop.model, list(loop.optimisers), **settings) as w:
        loop.run(w)
    assert w.watching.trouble is None, w.watching.trouble
    assert not w.watching.remarks, w.watching.remarks
    return w.report()


def _loss(subject: Subject, batch):
    if subject.step is not None:
        return subject.step(subject.model, batch)
    parts = take_apart(batch, subject.split)
    return subject.loss(call_model(subject.model, subject.model.forward, parts.inputs), parts.target)


def _batches(subject: Subject, steps: int):
    return islice((batch for epoch in repeat(subject.train) for batch in epoch), steps)


def _through_the_engine(training: Training) -> Report:
    subject, engine = training.subject, Engine(all_checks())
    adapter = adapter_for(subject.model)
    engine.emit(adapter.settings(subject))
    engine.emit(adapter.architecture(subject))
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        bench.set_training(True)
        for step, batch in enumerate(_batches(subject, training.steps), start=1):
            engine.emit(Step(step, bench.step(take_apart(batch)), bench.lr))
    engine.emit(Ending(training.steps))
    return build_report(engine, source="watch", framework=adapter.name, subject=subject.name, seconds=0.0)
