"""Which of the batches that a model was only asked about are validation, and which training data that somebody measures on."""

from dataclasses import dataclass

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.contract.kept import Group, Kept
from sleuth.probes.fingerprints.fingerprint import BLANK
from sleuth.probes.lab.gathered_batches import Gathered, gather

# Of what training data itself would show: from here on it is training data.
TRAINING_ITSELF = 0.9
# Standard errors that a share of so few samples may be off.
ERRORS = 3.0
# Fewer samples may all have been met by chance, or be the rest of an epoch.
LEAST_SAMPLES = 8
# So many at once without a target are a validation; fewer may be an agent that asks what to do next.
MANY = 36


@dataclass(frozen=True)
class Validation:
    gathered: Gathered
    unsure: str = ""  # why equals in training would tell nothing
    complete: bool = False  # all that was asked about in one pass


def validation_of(kept: Kept, train: Gathered, adapter: Adapter) -> Validation | None:
    """The source that was asked about most, those first that can be told from others."""
    met = share_met(train, kept.available)
    for group in sorted(kept.validation, key=lambda g: (not g.declared, not g.of_its_own, -len(g.batches))):
        found = _judged(group, train, met, adapter)
        if found is not None:
            return found
    return None


def share_met(train: Gathered, available: int | None) -> float:
    """How many of its own samples the training data that was kept holds: those of its later batches, of the earlier ones. By
    that measure augmented samples are new ones each time. Where no sample has come twice yet, as many as there are to come;
    0: nobody knows how many."""
    cut = -(-3 * len(train.prints) // 4)
    if not train.prints or not len(train.all_prints):
        return 0.0
    earlier, later = np.concatenate(train.prints[:cut]), train.prints[cut:]
    again = float(np.isin(np.concatenate(later), earlier).mean()) if later else 0.0
    if again > 0 or available is None or train.arrays is None:
        return again
    return min(1.0, len(np.unique(train.all_prints)) / max(available, 1))


def _judged(group: Group, train: Gathered, met: float, adapter: Adapter) -> Validation | None:
    """None: it is training data, or nobody's."""
    found = gather(group.batches, adapter)
    if found.passed[0].parts.target is None and not group.of_its_own and group.samples < MANY:
        return None
    known = np.setdiff1d(train.all_prints, [BLANK])
    shares = [float(np.isin(p, known).mean()) if len(p) else 0.0 for p in found.prints]
    mine = found.all_prints
    share = float(np.isin(mine, known).mean()) if len(mine) else 0.0
    complete = found.samples >= group.samples
    if not share:
        return Validation(found, complete=complete)
    if group.declared:
        return Validation(found, complete=complete)
    if not met:
        return Validation(found, "training was not seen to its end once, so that nobody can tell what else it holds")
    if _is_training(share, len(mine), met):
        return None
    if group.of_its_own or len(found.passed) == 1:
        return Validation(found, _doubt(group, found, train), complete)
    # Several sets may have been asked about by the same lines.
    measured = [_is_training(s, len(prints), met) for s, prints in zip(shares, found.prints, strict=True)]
    others = [p for p, mine in zip(found.passed, measured, strict=True) if not mine]
    if not others:
        return None
    mixed = any(mine and len(prints) >= LEAST_SAMPLES for mine, prints in zip(measured, found.prints, strict=True))
    mixed |= met < TRAINING_ITSELF
    return Validation(gather(others, adapter), "the model was asked about training data, too, in the same way" if mixed else "")


def _is_training(share: float, samples: int, met: float) -> bool:
    if samples < LEAST_SAMPLES:
        return share > 0
    return share >= TRAINING_ITSELF * met - ERRORS * float(np.sqrt(met * (1 - met) / samples))


def _doubt(group: Group, found: Gathered, train: Gathered) -> str:
    covered = min(1.0, len(np.unique(found.all_prints)) / max(group.samples, 1))
    if float(np.isin(train.all_prints, found.all_prints).mean()) >= TRAINING_ITSELF * covered:
        return "the model was asked about all data at once, with that of training"
    if _asked_first(found, train):
        return "the samples that training holds were asked about before it got them"
    return ""


def _asked_first(found: Gathered, train: Gathered) -> bool:
    """As where the most instructive samples are chosen: for most of them no answer is wanted once they are trained on."""
    ended = {one: p.step for p, prints in zip(found.passed, found.prints, strict=True) for one in prints.tolist()}
    began = {one: p.step for p, prints in reversed([*zip(train.passed, train.prints, strict=True)]) for one in prints.tolist()}
    both = began.keys() & ended.keys()
    return sum(ended[one] <= began[one] for one in both) > len(both) / 2
