"""Runs the probes in the fixed order: data, model, one batch, training, hyperparameters."""

from contextlib import ExitStack

from sleuth.core.contract.adapter import Emit, Steps
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.observation import Absent, Ending, Frame, Observation, Role
from sleuth.core.stage import Stage
from sleuth.core.trial import Trial
from sleuth.probes.lab.probe import Lab, OutOfTime, Probe, all_probes

# Later stages keep this much of the budget for themselves: a large model must not spend it all on being looked at.
RESERVED = {Stage.BATCH: 0.25, Stage.TRAINING: 0.15, Stage.HYPERPARAMETERS: 0.12}


def examine_all(lab: Lab, emit: Emit) -> None:
    """Every way out leaves a complete account: what a probe could not observe is emitted as Absent, with the reason."""
    emit(Absent(Ending, "examine does not see the end of a training"))
    waiting = all_probes()
    with ExitStack() as stack:
        stack.enter_context(lab.adapter.preserve(lab.subject))
        if isinstance(lab.adapter, Steps):
            lab.bench_ = stack.enter_context(lab.adapter.bench(lab.subject))
            if lab.bench_.note:
                lab.notes.append(lab.bench_.note)
        try:
            while waiting:
                run_probe(waiting[0], lab, emit)
                waiting.pop(0)
        except KeyboardInterrupt:
            lab.notes.append(f"interrupted while: {waiting[0].title}; this is the report so far")
            for probe in waiting:
                _absent(probe, "the examination was interrupted", emit)


def run_probe(probe: Probe, lab: Lab, emit: Emit) -> bool:
    """False: something is wanting for want of time, and may be tried once more."""
    reason = next((lab.failed[need] for need in probe.needs if need in lab.failed), None)
    late = reason is None and lab.clock() >= _deadline(probe, lab)
    if late:
        reason = f"the time for it was used up before (budget_seconds={lab.budget_seconds:g})"
    if reason is not None:
        _absent(probe, reason, emit)
        return not late
    lab.progress(probe.title)
    began, lab.probe_deadline = lab.clock(), _deadline(probe, lab)
    seen = set()
    reason = "the experiment gave no result"
    try:
        for observation in probe.run(lab):
            seen.add(_what(observation))
            emit(observation)
    except UnusableInput:
        raise
    except OutOfTime as error:
        late = True
        cut = f"cut off after {lab.clock() - began:.0f} s, its share of budget_seconds={lab.budget_seconds:g}"
        reason = str(error) or cut
        if not str(error):
            lab.notes.append(f"{probe.title}: {reason}")
    except Unsupported as error:
        reason = str(error)
    except Exception as error:  # the user's code may fail in ways the first pass did not show
        reason = f"the experiment failed: {type(error).__name__}: {_first_line(error)}"
    for what in probe.emits:
        if what not in seen:
            emit(Absent(what, reason))
    # What exists once takes the place of what was found before; the rest would stand there twice.
    return not late or any(not (isinstance(what, type) and issubclass(what, Trial)) for what in seen)


def _what(observation: Observation) -> type[Observation] | Role:
    """An Absent speaks for what it says is absent: the adapter knows the reason better than we do."""
    if isinstance(observation, Absent):
        return observation.what
    return observation.role if isinstance(observation, Frame) else type(observation)


def _deadline(probe: Probe, lab: Lab) -> float:
    reserved = sum(share for stage, share in RESERVED.items() if probe.stage < stage)
    return min(lab.clock() + probe.share * lab.budget_seconds, lab.started + (1 - reserved) * lab.budget_seconds)


def _absent(probe: Probe, reason: str, emit: Emit) -> None:
    for what in probe.emits:
        emit(Absent(what, reason))


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else ""
