"""Python waits for the accelerator again and again within a step."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Synchronisation
from sleuth.core.stage import Severity, Stage

LEAST_STEPS = 16
# The first steps log and allocate.
WARM_UP_STEPS = 2
# A step: to read the loss once, and what a scaler and a progress bar read, is how everybody works.
MOST = 3


@check(
    code="R606",
    stage=Stage.RESOURCES,
    severity=Severity.HINT,
    reads=(Synchronisation,),
    title="Values are read from the device many times a step",
    why="""An accelerator works through a queue that Python fills ahead of it. To read a value, .item(), .cpu(), float(loss),
    Python waits until the queue is empty, and then the device waits until there is something in it again.""",
    fix="""Keep values on the device, total += loss.detach(), and read them every hundred steps; take conditions on tensors,
    if loss > 1:, out of the loop.""",
    decided_by="how many calls of a step wait for the device",
    symptoms=("GPU utilisation is low", "training is slow", "item() is slow", "cudaStreamSynchronize takes most of the time"),
)
def host_synchronises(seen: Seen, *, most: int = MOST) -> Iterator[Evidence | NotExamined]:
    steps = [s for s in seen.all(Synchronisation) if s.step >= WARM_UP_STEPS]
    if len(steps) < LEAST_STEPS:
        yield NotExamined(f"only {len(steps)} steps were listened to; it takes {LEAST_STEPS}")
        return
    usual = median(sum(s.calls.values()) for s in steps)
    if usual <= most:
        return
    calls: Counter[str] = Counter()
    for step in steps:
        calls.update(step.calls)
    words = ", ".join(f"{n / len(steps):.0f} {call}" for call, n in calls.most_common(3) if n >= len(steps))
    yield Evidence(
        summary=f"{usual:.0f} calls a step wait for the device" + (f": {words}" if words else ""),
        location=_line(steps),
        numbers={"calls_a_step": usual, "steps": len(steps)},
        first_step=steps[0].step,
        last_step=steps[-1].step,
        strength=usual / most,
    )


def _line(steps: list[Synchronisation]) -> Location | None:
    lines = Counter(s.location for s in steps if s.location is not None)
    return lines.most_common(1)[0][0] if lines else None
