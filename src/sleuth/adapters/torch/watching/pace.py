"""Which steps are looked at in full, and which are listened to in full, so that the whole stays within a share of the time."""

from statistics import median

from sleuth.adapters.listening.stride import Stride

# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# And listened to: how a loop is written shows in its first steps.
FIRST_HEARD = 64
# Not part of the calibration: first calls allocate, import and compile.
WARM_UP = 2
# Of the budget; the rest is for what is done at every step, for judging and for writing.
SHARE_FOR_LOOKING = 0.3
SHARE_FOR_LISTENING = 0.2
# Of the steps so far, inverse: some three dozen looks in a thousand steps, whatever they cost.
PATIENCE = 6
# The same for steps that are listened to: what the recorders take samples of is as rare, see recorders/predictions.py.
HEARD_PATIENCE = 16
# Used to learn how long a step takes, and what it costs to listen to one.
PLAIN_STEPS = 8
# Where the user says which steps are looked at, nothing depends on the time.
ASKED_STRIDE = 8
# What a stopwatch inside our own functions does not see, as a share of what it sees: the way into them, and that the user's
# code finds the processor's caches full of ours. From ./dev bench watch.
UNSEEN = 0.1
# What it costs to listen to a step by half, of what it costs in full; and seconds for the latter where none was taken alone.
DOZING = 0.15
LISTENING = 8e-4


class Pace:
    """`every` is exact; else a step is looked at whenever the budget allows."""

    def __init__(self, *, every: int | None, overhead: float) -> None:
        self._every = every
        self._looks = Stride(overhead * SHARE_FOR_LOOKING / (1 + UNSEEN), PATIENCE)
        self._heard = Stride(overhead * SHARE_FOR_LISTENING / (1 + UNSEEN), HEARD_PATIENCE)
        self._plain: list[float] = []
        self._step_seconds = 0.0
        self._stretch_ends = FIRST_HEARD

    @property
    def interval(self) -> int:
        return max(self._every or self._looks.steps, 1)

    def all_in_all(self, measured: float, dozed: int) -> float:
        """Seconds, of what stopwatches measured and of so many steps that were only half listened to."""
        listening = self._heard.cost if self._heard.cost is not None else LISTENING
        return (measured + dozed * DOZING * listening) * (1 + UNSEEN)

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        return step < FIRST_LOOKS or self._looks.is_due(step)

    def listens_to(self, step: int, stretch: int = 1) -> bool:
        """`stretch`: steps that have to be heard one after the other."""
        if step < self._stretch_ends:
            return True
        due = step % ASKED_STRIDE == 0 if self._every is not None else self._heard.is_due(step)
        if due:
            self._stretch_ends = step + stretch
        return due

    def quiet_until(self, step: int) -> int:
        """The first step after this one that is looked at or listened to; never too late."""
        if self._every is not None:
            return min(step - step % n + n for n in (self._every, ASKED_STRIDE))
        return max(step + 1, min(self._looks.next, self._heard.next))

    def step_ended(self, step: int, seconds: float, *, looked: bool, heard: bool, own_seconds: float) -> None:
        if not (looked or heard) or self._every is not None or step < WARM_UP:
            return
        if looked:
            self._looks.paid(own_seconds)
        elif heard and step >= FIRST_LOOKS:
            self._heard.paid(own_seconds)
            self._plain = [*self._plain[-PLAIN_STEPS:], seconds]
        if self._step_seconds == 0.0 and len(self._plain) >= PLAIN_STEPS:
            self._step_seconds = median(self._plain)
            self._looks.calibrate(step, self._step_seconds)
        elif self._step_seconds:
            if looked:
                self._looks.calibrate(step, self._step_seconds)
            if heard and step >= FIRST_HEARD - 1:
                self._heard.calibrate(step, self._step_seconds)
