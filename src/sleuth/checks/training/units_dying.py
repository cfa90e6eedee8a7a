"""Units that worked fall silent for good while the model trains."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Step, Units
from sleuth.core.stage import Severity, Stage

# Where these say zero their slope is zero as well.
RECTIFIERS = ("relu", "relu6", "hardshrink", "softshrink")
# A tenth to a fifth of the units of a healthy ReLU net fall silent.
DIED_SHARE = 0.4
# Where the loss goes on falling: up to half of a layer may fall silent in a training that could not go better.
MOST = 0.5
# Fewer units may fall silent together by chance.
LEAST_UNITS = 8
LEAST_LOOKS = 6
# At the end: a unit that fires for one sample in twenty stays silent with a probability of 4 %.
LEAST_SAMPLES = 64


@dataclass(frozen=True)
class Activity:
    """Of one layer: which units fired, look by look."""

    path: str
    steps: np.ndarray
    fired: np.ndarray  # looks × units
    samples: np.ndarray

    @property
    def begin(self) -> int:
        """How many looks are called the first ones."""
        return max(len(self.steps) // 3, 1)

    @property
    def late(self) -> int:
        """How many are the last: those of the last third of the steps, since looks become rarer."""
        return max(int((self.steps >= 2 / 3 * self.steps[-1]).sum()), 2)

    @property
    def last_samples(self) -> int:
        return int(self.samples[-self.late :].sum())

    @property
    def died(self) -> np.ndarray:
        return np.asarray(self.fired[: self.begin].any(axis=0) & ~self.fired[-self.late :].any(axis=0))

    @property
    def died_share(self) -> float:
        """Less those that merely fire seldom: as many as units that fired at one look and at two let expect (Chao, 1987)."""
        times = self.fired[-self.late :].sum(axis=0)
        once, twice = int((times == 1).sum()), int((times == 2).sum())
        seldom = (1 - 1 / self.late) * once * (once - 1) / (2 * (twice + 1))
        return float(self.died.sum() - seldom) / len(times)

    @property
    def most_died(self) -> bool:
        """More than half, beyond chance."""
        count = self.fired.shape[1]
        return self.died_share > MOST + (MOST * (1 - MOST) / count) ** 0.5

    def death(self) -> tuple[int, int]:
        """The steps between which half of those that died had fired for the last time."""
        last = [int(np.flatnonzero(column)[-1]) for column in self.fired[:, self.died].T]
        at = int(np.median(last))
        return int(self.steps[at]), int(self.steps[at + 1])


@check(
    code="T430",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Units, Step),
    explains=(
        "zero-gradients",
        "vanishing-gradients",
        "update-too-small",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-spikes",
        "underfitting",
        "predicts-one-class",
    ),
    title="Units fall silent for good while training",
    why="""One step that is too large pushes the biases and weights of many ReLUs so far down that no sample switches them on any
    more. Without a gradient nothing brings them back: the model goes on with what is left.""",
    fix="""Lower the learning rate or clip the gradients (torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)) so that no
    step throws units off, go back to a checkpoint before it, or use LeakyReLU or GELU.""",
    decided_by="which units still fire, over the steps",
    symptoms=(
        "dying relu",
        "more and more neurons are dead",
        "loss suddenly gets stuck",
        "activations become all zero during training",
        "loss jumps and never recovers",
    ),
)
def units_dying(
    seen: Seen, *, died_share: float = DIED_SHARE, least_looks: int = LEAST_LOOKS, least_samples: int = LEAST_SAMPLES
) -> Iterator[Evidence | NotExamined]:
    layers = _layers(seen.all(Units))
    if not layers:
        yield NotExamined("no ReLU or other activation that switches units off was seen at work")
        return
    long = [a for a in layers if len(a.steps) >= least_looks and a.last_samples >= least_samples]
    if not long:
        yield NotExamined(f"single units were looked at at fewer than {least_looks} steps, or on too few samples")
        return
    sick = [a for a in long if a.died_share >= died_share]
    if not sick:
        return
    progress = progress_of(seen.all(Step))
    if progress is None:
        yield NotExamined("units fall silent, but the losses cannot tell whether that does harm")
        return
    # Sparse codes are learned that way, and a wide layer can spare many: there the loss falls all along.
    if progress.works and not progress.worsened:
        yield from (_evidence(activity, died_share, Severity.HINT) for activity in sick if activity.most_died)
        return
    yield from (_evidence(activity, died_share, Severity.WARNING) for activity in sick)


def _layers(observed: list[Units]) -> list[Activity]:
    """Several calls of a layer in one step are joined: a unit that fires in one of them is alive."""
    groups: dict[tuple[str, int], dict[int, tuple[np.ndarray, int]]] = defaultdict(dict)
    for units in observed:
        if units.activation in RECTIFIERS and len(units.nonzero) >= LEAST_UNITS:
            looks = groups[units.path, len(units.nonzero)]
            fired, samples = looks.get(units.step, (np.zeros(len(units.nonzero), dtype=bool), 0))
            looks[units.step] = (fired | (units.nonzero > 0), max(samples, units.samples))
    found = []
    for (path, _), looks in groups.items():
        steps = sorted(looks)
        counts = np.array([looks[s][1] for s in steps])
        found.append(Activity(path, np.array(steps), np.array([looks[s][0] for s in steps]), counts))
    return found


def _evidence(activity: Activity, died_share: float, severity: Severity) -> Evidence:
    died, count, samples = int(activity.died.sum()), activity.fired.shape[1], activity.last_samples
    before, step = activity.death()
    though = "; the loss falls all the same, with what is left" if severity is Severity.HINT else ""
    return Evidence(
        where=activity.path,
        summary=f"{died} of {count} units of {activity.path} that fired at first are silent since a step between {before} and "
        f"{step}, for each of the {samples} samples looked at last{though}",
        numbers={"died": died, "units": count, "step": step, "samples": samples},
        series=(Series(f"silent units of {activity.path}", _floats(activity.steps), _floats((~activity.fired).sum(axis=1))),),
        first_step=before + 1,
        last_step=int(activity.steps[-1]),
        severity=severity,
        strength=died / count / died_share,
    )


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.astype(float).tolist())
