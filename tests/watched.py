"""A training of a case, step by step through the engine, as a source that listens to the user's loop feeds it."""

from itertools import islice, repeat

from sleuth import Report
from sleuth.adapters import adapter_for
from sleuth.api import build_report
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.observation import Ending, Step
from sleuth.core.subject import take_apart
from sleuth.testing import Training


def watched(training: Training) -> Report:
    subject, engine = training.subject, Engine(all_checks())
    adapter = adapter_for(subject.model)
    engine.emit(adapter.settings(subject))
    engine.emit(adapter.architecture(subject))
    batches = (batch for epoch in repeat(subject.train) for batch in epoch)
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        bench.set_training(True)
        for step, batch in enumerate(islice(batches, training.steps), start=1):
            engine.emit(Step(step, bench.step(take_apart(batch)), bench.lr))
    engine.emit(Ending(training.steps))
    return build_report(engine, source="watch", framework=adapter.name, subject=subject.name, seconds=0.0)
