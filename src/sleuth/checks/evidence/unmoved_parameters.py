"""Parameters that no step of a whole training has moved, but for weight decay."""

from sleuth.core.history import Seen
from sleuth.core.observation import Settings, Step
from sleuth.core.reading.course import Course

# Of the largest value: less is rounding.
ROUNDING = 1e-6
# Groups may have rates of their own, and schedules are seen at some steps only.
MARGIN = 2.0


def is_unmoved(weight: Course, decay: float) -> bool:
    """From the first look to the last, by all that was measured: mean, spread, range, sum."""
    first, last = weight.table[0], weight.table[-1]
    largest = max(abs(first[3]), abs(first[4]))
    allowed = largest * (decay + ROUNDING)
    means = abs(first[5] - last[5]) / max(first[0], 1)
    return largest > 0 and max(abs(first[1] - last[1]), abs(first[3] - last[3]), abs(first[4] - last[4]), means) <= allowed


def decayed_by(seen: Seen) -> float | None:
    """The share of a weight that decay alone may have taken away by now. None: the optimiser makes steps of any size of it."""
    settings = seen.maybe(Settings)
    if settings is None:
        return None
    options = settings.optimiser_options
    decay = float(options.get("weight_decay") or 0.0)
    if decay == 0.0:
        return 0.0
    if not (settings.optimiser in ("SGD", "AdamW") or options.get("decoupled_weight_decay")):
        return None
    rates = [s.lr for s in seen.all(Step) if s.lr is not None]
    if not rates:
        return None
    steps = seen.all(Step)[-1].step + 1
    lasting = 1 / max(1 - float(options.get("momentum") or 0.0), 1e-3)
    return MARGIN * decay * lasting * steps * sum(rates) / len(rates)
