"""After the end of a training: what passed by is examined, as far as it was kept, and the model as it was at its first step."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter, Emit, Steps
from sleuth.core.contract.kept import Kept
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Absent, Batch, Failure, Frame, Observation, Settings, Split, Step
from sleuth.core.runtime.clock import shared_clock
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Alignment, Connection, GradientCheck, Overlap
from sleuth.instruments.graph import drawing_of
from sleuth.probes.data.batch_order import PROBES as OF_THE_ORDER
from sleuth.probes.data.batch_order import Sequenced
from sleuth.probes.data.late_drift import drift, late_alignment
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.gathered_batches import Gathered, gather
from sleuth.probes.lab.probe import Lab, Probe, all_probes
from sleuth.probes.lab.sources import whole_batches
from sleuth.probes.lab.validation_or_training import validation_of
from sleuth.probes.model.gradient_check import gradient_check
from sleuth.session.experiment_time import highest_rate, undecided, undecided_first
from sleuth.session.recorded import RecordedTraining

# These would need the user's own loader: its workers, its second pass, the size of its batches.
OF_THE_LOADER = ("worker_noise", "second_pass", "gradient_noise")
# What can be asked of a model whatever its weights are, and without its loss.
OF_ANY_WEIGHTS = ("describing", "first_pass", "flowing", "causality", "dependence", "modes", "counting")
# What asks for the weights of the first step only: the model need not be called.
OF_FIRST_WEIGHTS = ("tying",)
# Little work each: before the budget is spent on the rest, and in this order. A pass through the model that is only followed
# need not be compiled.
AT_ONCE = ("reading", "overlap", "describing", "flowing", "first_pass", "connecting", "time_reach")
# These need one program or none.
COMPILED_ONCE = ("start", "causality")
# Of the time, for a derivative that somebody wrote: two programs are compiled for it. Where nobody has, the derivatives are the
# framework's own, and their time is better spent elsewhere.
BY_HAND_SHARE = 0.4
NOT_BY_HAND = "no derivative is written by hand: they are the framework's own"


def examine(
    recorded: RecordedTraining, seconds: float, progress: Callable[[str], None], probes: Iterable[Probe] | None = None
) -> None:
    """Experiments on what the watch kept; what they show is added to the recording. Nothing of it may raise: what went wrong is
    a remark in the report."""
    kept, recorded.kept = recorded.kept, None
    if kept is None:
        return
    during = ""
    try:
        if kept.only_a_step:
            _examine_step(recorded, kept, seconds, progress)
            return
        aftermath = Aftermath(recorded.adapter, kept, seconds, recorded.history.has)
        aftermath.rate, aftermath.wanted = highest_rate(recorded), undecided(recorded)
        aftermath.examine(recorded.take, progress, probes)
        during = aftermath.interrupted
    except KeyboardInterrupt:
        during = "getting ready"
    except Exception as error:
        recorded.remark(f"what was kept could not be examined: {type(error).__name__}: {error}")
    if during:
        recorded.remark(f"the experiments after the end were interrupted while: {during}; this is the report so far")


def _examine_step(recorded: RecordedTraining, kept: Kept, seconds: float, progress: Callable[[str], None]) -> None:
    """Where no batches were kept: only what needs nothing but the step itself."""
    if kept.forbidden or not isinstance(recorded.adapter, Steps):
        recorded.take(Absent(GradientCheck, kept.forbidden or kept.only_a_step))
        return
    lab = Lab(kept.subject, recorded.adapter, seconds, shared_clock(), progress=progress)
    lab.train.batches = [Parts(np.zeros((1, 1)), None, None)]  # the step has its own, whatever it is given
    with recorded.adapter.bench(kept.subject) as lab.bench_:
        run_probe(replace(gradient_check, share=1.0), lab, recorded.take)


class Aftermath:
    def __init__(self, adapter: Adapter, kept: Kept, seconds: float, has: Callable[[Any], bool]) -> None:
        """`has`: was this kind of observation made while the training ran? What was seen there counts more."""
        self._adapter, self._kept, self._seconds, self._has = adapter, kept, seconds, has
        self._train = gather(kept.train, adapter)
        self._validation = validation_of(kept, self._train, adapter)
        self._live: dict[Any, bool] = {}
        self._by_hand: tuple[str, ...] | None = None  # operations whose derivative somebody wrote, where that is known
        self.notes: list[str] = []
        self.interrupted = ""  # during what Ctrl-C came
        self.rate: float | None = None  # that the training came to run at, where that is not the one it began with
        self.wanted: frozenset[Any] = frozenset()  # kinds of observations that checks wait for

    def examine(self, emit: Emit, progress: Callable[[str], None], probes: Iterable[Probe] | None = None) -> None:
        """By these probes, in their order; None: by all there are, those that tell most for their time first."""
        for observation in self._kept.noted:
            emit(observation)
        samples = None if self._validation is None else self._validation.gathered.samples
        Sequenced(self._kept, self._adapter, self._seconds, samples).examine(emit, progress)
        self._examine_drift(emit)
        lab = Lab(self._subject(), self._adapter, self._seconds, shared_clock(), progress=progress, rate=self.rate)
        with ExitStack() as stack:
            stack.enter_context(self._adapter.preserve(lab.subject))
            if isinstance(self._adapter, Steps) and not self._kept.forbidden:
                lab.bench_ = stack.enter_context(self._adapter.bench(lab.subject))
            turns = list(probes) if probes is not None else self._in_turn()
            late = [probe for probe in turns if not self._attempt(probe, lab, emit)]
            # Once more the same time, for what was cut off because others had their shares. What it notes now counts.
            lab.begin_anew()
            lab.notes = [note for note in lab.notes if not any(note.startswith(probe.title) for probe in late)]
            for probe in late:
                self._attempt(replace(probe, share=1.0), lab, emit)
        self.notes += lab.notes
        if self._kept.callable and not self._kept.forbidden and not self.interrupted and lab.train.batches:
            self._draw(lab, emit)

    def _in_turn(self) -> list[Probe]:
        turns = sorted(all_probes(), key=self._turn)
        at_once = [probe for probe in turns if probe.name in AT_ONCE]
        return [*at_once, *undecided_first((probe for probe in turns if probe.name not in AT_ONCE), self.wanted)]

    def _attempt(self, probe: Probe, lab: Lab, emit: Emit) -> bool:
        """False: there was no time for it."""
        try:
            return self._run(probe, lab, emit)
        except KeyboardInterrupt:  # this one and the rest say why they gave nothing
            self.interrupted = probe.title
            return self._run(probe, lab, emit)

    def _turn(self, probe: Probe) -> tuple[bool, int, bool]:
        """What is compiled takes its time: that comes after everything that the data alone can tell."""
        compiled = self._kept.is_compiled
        return compiled and probe.stage is not Stage.DATA, _turn(probe), not (compiled and probe.name in COMPILED_ONCE)

    def _draw(self, lab: Lab, emit: Emit) -> None:
        drawing = drawing_of(lab.subject.model, lab.batch.inputs)
        if drawing is not None:
            emit(drawing)

    def _run(self, probe: Probe, lab: Lab, emit: Emit) -> bool:
        if probe in OF_THE_ORDER:
            return True
        reason = self._obstacle(probe)
        if reason:
            for what in probe.emits:
                self._pass_on(Absent(what, reason), emit)
            return True
        if probe.name == "gradient_check" and self._by_hand:
            probe = replace(probe, share=BY_HAND_SHARE)
        in_time = run_probe(probe, lab, lambda observation: self._pass_on(observation, emit))
        if probe.name == "reading":
            lab.train.complete = self._is_complete
            if lab.validation is not None:
                lab.validation.complete = False
        return in_time

    def _obstacle(self, probe: Probe) -> str:
        if self.interrupted:
            return "the experiments after the end of the script were interrupted"
        if probe.name in OF_THE_LOADER:
            return "it needs the loader itself, which a script keeps for itself"
        if probe.stage is Stage.DATA:
            return ""
        if probe.name == "gradient_check" and self._kept.is_compiled and self._by_hand == ():
            return NOT_BY_HAND
        if self._kept.forbidden:
            return self._kept.forbidden
        if probe.name in OF_FIRST_WEIGHTS and self._kept.first_weights:
            return ""
        why = "; ".join(self._kept.remarks) or "the model as it was at the first step was not kept"
        if not self._kept.callable:
            return why
        return "" if self._kept.at_start or probe.name in OF_ANY_WEIGHTS else why

    def _pass_on(self, observation: Observation, emit: Emit) -> None:
        match observation:
            case Batch():
                new = observation.split is Split.VALIDATION or not self._was_seen(Batch)
            case Absent():
                new = not self._has(observation.what)
            case Overlap() if self._validation is not None and self._validation.unsure:
                emit(Absent(Overlap, self._validation.unsure))
                return
            case Overlap():
                complete = self._is_complete and self._validation is not None and self._validation.complete
                emit(replace(observation, complete=complete))
                return
            case Alignment():
                asked = [] if self._validation is None else self._validation.gathered.passed
                emit(late_alignment(observation, self._train.passed, asked, self._adapter))
                return
            case Connection():
                self._by_hand, new = observation.custom, not self._was_seen(Connection)
            case Settings() if observation.lr is not None and observation.lr < 0:
                new = True  # read off the first two steps: what was written by hand has no settings of its own
            case Frame():
                new = False
            case Failure() if self._was_seen(Step):
                # The training did the same and went on: what fails is how we do it again.
                self.notes.append(f"what passed by could not be done again: {observation.error}: {observation.message}")
                new = False
            case _:
                new = not self._was_seen(type(observation))
        if new:
            emit(observation)

    def _was_seen(self, what: Any) -> bool:
        """While the training ran: asked before anything of ours is added to it."""
        if what not in self._live:
            self._live[what] = self._has(what)
        return self._live[what]

    def _examine_drift(self, emit: Emit) -> None:
        """Without an answer there is nothing to say: what came first was looked at all the same."""
        if self._validation is not None:
            with suppress(Unsupported):
                emit(drift(self._train.passed, self._validation.gathered.passed, self._adapter))

    def _subject(self) -> Subject:
        subject = self._with_data()
        step, split = subject.step, subject.split
        if step is None or split is None:
            return subject
        return replace(subject, step=lambda model, raw: step(model, split(raw)))

    def _with_data(self) -> Subject:
        train, validation = self._train, None if self._validation is None else self._validation.gathered
        if train.arrays is None or (validation is not None and validation.arrays is None):
            came = None if validation is None else [p.parts.raw for p in validation.passed]
            return replace(self._kept.subject, train=[p.parts.raw for p in train.passed], validation=came, split=lambda raw: raw)
        arrays = None if validation is None else validation.arrays
        if self._kept.batch_size is not None:
            return self._of_one_size(self._kept.batch_size, train, validation)
        return replace(self._kept.subject, train=train.arrays, validation=arrays, split=train.form)

    def _of_one_size(self, size: int, train: Gathered, validation: Gathered | None) -> Subject:
        sets = [None if found is None else whole_batches(found.arrays, size) for found in (train, validation)]
        # Fewer samples than one batch has: some came twice in it.
        learned = sets[0] or [p.parts.raw for p in train.passed]
        asked = None if validation is None else sets[1] or [p.parts.raw for p in validation.passed]
        split = train.form if sets[0] else lambda raw: raw
        return replace(self._kept.subject, train=learned, validation=asked, split=split)

    @property
    def _is_complete(self) -> bool:
        return self._train.positioned and self._train.samples == self._kept.available


def _turn(probe: Probe) -> int:
    return AT_ONCE.index(probe.name) if probe.name in AT_ONCE else len(AT_ONCE)
