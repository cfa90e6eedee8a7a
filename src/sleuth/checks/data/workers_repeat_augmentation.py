"""Loader workers share one random state."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Order, WorkerNoise

# Odds against so many equal results, were workers as independent of each other as a worker is of its own past.
CHANCE = 1e-5
# Two random sources, of which one is shared, still agree in a good part of the samples.
SHARED = 0.2
# Streams: what two workers must have in common at the same places, and how many different samples that takes.
COMMON = 0.99
LEAST_DIFFERENT = 8


@check(
    code="D120",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(WorkerNoise,),
    explains=(
        "duplicate-samples",
        "train-val-overlap",
        "conflicting-labels",
        "batch-size-off",
        "capacity-too-large",
        "overfitting",
    ),
    title="Loader workers repeat each other",
    why="""Each worker process gets a copy of the data set. A random generator kept in it, or seeded alike in worker_init_fn,
    draws the same numbers in every worker, and in every epoch anew: augmentation then shows the model far fewer variants than
    it seems to. A stream that every worker reads in full brings each sample as often as there are workers.""",
    fix="""Draw from torch's generator (torch.rand, torch.randn) or np.random in __getitem__: the loader seeds both for each
    worker and epoch. Or seed your own in worker_init_fn from torch.initial_seed() % 2**32.""",
    decided_by="fingerprints of the augmented samples of each worker",
    symptoms=(
        "same random augmentation in every worker",
        "numpy random seed identical in dataloader workers",
        "augmentations repeat each epoch",
    ),
)
def workers_repeat_augmentation(seen: Seen, *, shared: float = SHARED) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(WorkerNoise)
    if trial.stream_alike is not None:
        yield from _stream(trial)
        return
    if trial.tried == 0 or trial.alike_within == 1:
        return
    if not _beyond_chance(1.0, trial, shared):
        yield NotExamined(f"augmentation changes {1 - trial.alike_within:.0%} of the samples: too few to compare the workers")
        return
    if trial.tried > 1 and _beyond_chance(trial.alike_across, trial, shared):
        yield _across(trial)
    elif _beyond_chance(trial.alike_epochs, trial, shared):
        yield _epochs(trial, seen.maybe(Order))


def _beyond_chance(alike: float, trial: WorkerNoise, shared: float) -> bool:
    """Hoeffding's bound on that many equals among so many comparisons."""
    natural = min(0.999, trial.alike_within + 1 / trial.comparisons)
    if alike < shared or alike <= natural:
        return False
    odds = alike * math.log(alike / natural)
    odds += (1 - alike) * math.log((1 - alike) / (1 - natural)) if alike < 1 else 0.0
    return trial.comparisons * odds > -math.log(CHANCE)


def _across(trial: WorkerNoise) -> Evidence:
    epochs = ", and the next epoch brings the same once more" if _beyond_chance(trial.alike_epochs, trial, 0.0) else ""
    return Evidence(
        where="train",
        summary=f"two of {trial.workers} workers were given the same samples: {trial.alike_across:.0%} of {trial.comparisons} "
        f"came out equal, where a worker that reads one again gets the same in {trial.alike_within:.0%}{epochs}",
        numbers=_numbers(trial),
        strength=trial.alike_across / max(trial.alike_within, 0.01),
    )


def _epochs(trial: WorkerNoise, order: Order | None) -> Evidence:
    """Harmless where samples are shuffled: the same noise falls on others. In a fixed order nothing new ever comes."""
    fixed = order is not None and order.epochs_in_same_order is True
    return Evidence(
        where="train",
        summary=f"workers start each epoch with the same random numbers: {trial.alike_epochs:.0%} of {trial.comparisons} samples "
        "came out as in the epoch before"
        + ("; samples come in a fixed order, so augmentation adds nothing after the first epoch" if fixed else ""),
        numbers=_numbers(trial),
        severity=None if fixed else Severity.HINT,
        fix="Let the seed change with the epoch: draw from torch or np.random, which the loader seeds anew, or seed your own "
        "generator from torch.initial_seed() % 2**32; or keep the workers: DataLoader(…, persistent_workers=True).",
        strength=trial.alike_epochs,
    )


def _stream(trial: WorkerNoise) -> Iterator[Evidence | NotExamined]:
    alike = trial.stream_alike or 0.0
    if alike >= COMMON and trial.stream_samples < LEAST_DIFFERENT:
        yield NotExamined(f"the stream holds {trial.stream_samples} different samples: too few to compare its workers")
    elif alike >= COMMON or trial.stream_copies:
        yield Evidence(
            where="train",
            summary=f"each of {trial.workers} workers reads the whole stream, so that every sample comes {trial.workers} times"
            if trial.stream_copies
            else f"two of {trial.workers} workers give the same {trial.comparisons} samples in the same order",
            numbers=_numbers(trial),
            fix="Share the stream out in __iter__: info = torch.utils.data.get_worker_info(); yield only samples[info.id :: "
            "info.num_workers]; a stream of random samples needs a seed from torch.initial_seed() in each worker.",
            strength=float(trial.workers),
        )


def _numbers(trial: WorkerNoise) -> dict[str, float | int | None]:
    return {
        "workers": trial.workers,
        "tried": trial.tried,
        "comparisons": trial.comparisons,
        "alike_within": trial.alike_within,
        "alike_across": trial.alike_across,
        "alike_epochs": trial.alike_epochs,
        "stream_alike": trial.stream_alike,
        "stream_samples": trial.stream_samples,
    }
