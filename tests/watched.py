"""A training under watch: torch through `sleuth.watch` itself, others step by step through the engine."""

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice, repeat

import numpy as np
import pytest
import torch

import sleuth
from sleuth import Report
from sleuth.adapters import adapter_for
from sleuth.api import build_report
from sleuth.checks import all_checks
from sleuth.core.adapter import Bench
from sleuth.core.engine import Engine
from sleuth.core.observation import Ending, Frame, Observation, Role, Step
from sleuth.core.statistics import norm_of
from sleuth.core.subject import Parts, Subject, call_model, take_apart
from sleuth.testing import Loop, Training

# Where there is no watch yet, these steps are looked at in full.
FIRST_LOOKS = 4
LOOKED_EVERY = 10


def watched(built: Training | Loop, **options) -> Report:
    if isinstance(built, Loop):
        return _loop(built, **options)
    # On its torch backend a model of Keras is a module too.
    if isinstance(built.subject.model, torch.nn.Module) and adapter_for(built.subject.model).name == "torch":
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

    return Loop(model, [optimiser], run, training.options)


def _loop(loop: Loop, **options) -> Report:
    settings = {"directory": None, "quiet": True, **loop.options, **options}
    leaving = pytest.raises(RuntimeError) if loop.fails else nullcontext()
    with leaving, sleuth.watch(loop.model, list(loop.optimisers), **settings) as w:
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


def _step(adapter, bench: Bench, batch: Parts, step: int) -> Iterator[Observation]:
    """Some steps are looked at in full, as a watch does."""
    if step > FIRST_LOOKS and step % LOOKED_EVERY:
        yield Step(step, bench.step(batch), bench.lr)
        return
    gradients = bench.gradients(batch)
    reached = {path: g for path, g in gradients.by_path.items() if g is not None}
    table = adapter.measure(list(reached.values()))
    paths = bench.paths()
    before = [np.array(adapter.values(bench.parameter(path))) for path in paths]
    bench.apply(batch)
    changes = [adapter.values(bench.parameter(p)) - b for p, b in zip(paths, before, strict=True)]
    if reached:
        yield Frame(step, Role.GRADIENT, tuple(reached), table)
    yield Frame(step, Role.WEIGHT, paths, adapter.measure(before))
    yield Frame(step, Role.UPDATE, paths, adapter.measure(changes))
    yield Step(step, gradients.loss if np.isfinite(gradients.loss) else None, bench.lr, gradient_norm=norm_of(table))


def _through_the_engine(training: Training) -> Report:
    subject, engine = training.subject, Engine(all_checks())
    adapter = adapter_for(subject.model)
    engine.emit(adapter.settings(subject))
    engine.emit(adapter.architecture(subject))
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        bench.set_training(True)
        for step, batch in enumerate(_batches(subject, training.steps), start=1):
            for observation in _step(adapter, bench, take_apart(batch), step):
                engine.emit(observation)
    engine.emit(Ending(training.steps))
    return build_report(engine, source="watch", framework=adapter.name, subject=subject.name, seconds=0.0)
