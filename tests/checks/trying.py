"""Judging a training by a few checks, with the named experiments alone."""

from dataclasses import dataclass
from typing import Any

from sleuth.adapters import adapter_for
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.settings import Configuration
from sleuth.core.subject import Subject
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab, all_probes

BASIS = {"reading", "describing", "first_pass"}


@dataclass(frozen=True)
class Outcome:
    findings: dict[str, Finding]
    clear: tuple[str, ...]
    not_examined: dict[str, str]
    history: Any


def attempt(subject: Subject, checks: set[str], probes: set[str], budget_seconds: float = 300.0) -> Outcome:
    adapter = adapter_for(subject.model)
    engine = Engine(all_checks(), Configuration(select=tuple(checks)))
    lab = Lab(subject, adapter, budget_seconds)
    with adapter.preserve(subject), adapter.bench(subject) as bench:
        lab.bench_ = bench
        for probe in all_probes():
            if probe.name in BASIS | probes:
                run_probe(probe, lab, engine.emit)
    judged = engine.judge()
    return Outcome({f.name: f for f in judged.findings}, judged.clear, judged.not_examined, engine.history)
