"""Memory rises step after step."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Holder, Memory, Role, Units
from sleuth.core.stage import Confidence, Severity, Stage

# Allocators, caches of kernels and the first batches come to rest within so many steps.
WARM_UP_STEPS = 20
# Fewer readings show no course.
LEAST_READINGS = 16
# The course is judged by the least reading of each part: a validation between steps takes memory and gives it back.
PARTS = 8
# What may rise once and stay: pools of an allocator, caches, buffers of a logger.
LEAST_RISE = 64 << 20
# Of what the process held after its first steps.
RISE = 0.1
# Where the variable that grows is known, less is enough: nothing else can be behind it.
KNOWN_SHARE = 3
# Of the rise in the first half: what fills up and comes to rest rises less and less.
GOES_ON = 0.5
# A list that explains so much of the rise is what rises.
EXPLAINED = 0.5
# In the first pass data may be cached and outputs collected for its end; what takes this much is worth a word all the same.
LARGE_RISE = 1 << 30


@check(
    code="R602",
    stage=Stage.RESOURCES,
    severity=Severity.ERROR,
    reads=(Memory,),
    explains=("out-of-memory",),
    title="Memory rises step after step",
    why="""What a step needs is the same each time, so memory should come to rest after the first ones. When it rises on and on,
    something keeps what every step makes, and a longer run ends without memory.""",
    fix="""Look for lists and dictionaries that are filled in the loop and never emptied; keep numbers (loss.item()) or a bounded
    collections.deque(maxlen=…), and move what must be kept to disk.""",
    decided_by="the process's own memory over the steps: does the least of each part rise on and on, and which variable grew",
    symptoms=(
        "memory grows every iteration",
        "RAM usage increases during training",
        "memory leak",
        "the process is killed after some epochs",
        "out of memory after hours",
    ),
)
def memory_grows(seen: Seen, *, rise: float = RISE, goes_on: float = GOES_ON) -> Iterator[Evidence | NotExamined]:
    every = seen.all(Memory)
    passes = every[-1].passes
    # From the second pass on nothing is read for the first time.
    readings = [r for r in every if r.step >= WARM_UP_STEPS and (passes < 3 or r.passes >= 2)]
    if len(readings) < LEAST_READINGS:
        yield NotExamined(f"memory was read only {len(readings)} times after the first steps")
        return
    least = [float(min(r.bytes for r in part)) for part in _parts(readings)]
    rose = least[-1] - least[0] - _own(seen)
    holder = _holder(every)
    enough = max(LEAST_RISE, rise * least[0]) / (KNOWN_SHARE if holder is not None else 1)
    if rose < enough or not _steady(least, goes_on):
        return
    if (reason := _why_not_said(passes, rose, holder)) is not None:
        yield NotExamined(reason)
        return
    yield _evidence(readings, rose, holder)


def _holder(every: list[Memory]) -> Holder | None:
    """What explained the rise when it was last looked for."""
    start = next(r.bytes for r in every if r.step >= WARM_UP_STEPS)
    for reading in reversed(every):
        for holder in reading.holders:
            if not holder.bounded and holder.bytes >= EXPLAINED * (reading.bytes - start):
                return holder
    return None


def _parts(readings: list[Memory]) -> list[list[Memory]]:
    return [[readings[i] for i in part] for part in np.array_split(np.arange(len(readings)), PARTS)]


def _steady(least: list[float], goes_on: float) -> bool:
    """Up in nearly every part, and not less and less."""
    ups = np.diff(least)
    half = len(least) // 2
    first, second = least[half - 1] - least[0], least[-1] - least[half]
    return bool((ups > 0).sum() >= len(ups) - 1 and ups[-1] > 0 and second >= goes_on * first)


def _own(seen: Seen) -> int:
    """What sleuth itself has kept of the steps: no more than this can be its share of the rise."""
    frames = (frame.table.nbytes for role in Role for frame in seen.frames(role))
    return sum(frames) + sum(u.nonzero.nbytes + u.min.nbytes + u.max.nbytes for u in seen.all(Units))


def _why_not_said(passes: int, rose: float, holder: Holder | None) -> str | None:
    tensors = holder is not None and "tensors" in holder.what
    size = _size(rose)
    if passes >= 3 or (tensors and (passes == 0 or rose >= LARGE_RISE)):
        return None
    if passes:
        return f"memory rose by {size}, but the data are not yet read twice: they may be cached, or outputs kept until the end"
    return f"memory rose by {size}, but no loader was heard: a buffer may be filled that comes to an end"


def _evidence(readings: list[Memory], rose: float, holder: Holder | None) -> Evidence:
    first, last = readings[0], readings[-1]
    steps = max(last.step - first.step, 1)
    held = f"; {holder.name} has grown to {holder.what}" if holder is not None else ""
    return Evidence(
        summary=f"from step {first.step:,} to {last.step:,} the memory of the process rose by {_size(rose)}, "
        f"{_size(rose / steps)} a step, and it goes on{held}",
        where=holder.name if holder is not None else None,
        location=holder.location if holder is not None else None,
        numbers={"bytes": int(rose), "bytes_a_step": rose / steps, "steps": steps},
        series=(Series("memory", tuple(float(r.step) for r in readings), tuple(float(r.bytes) for r in readings)),),
        severity=Severity.ERROR if holder is not None else Severity.WARNING,
        confidence=Confidence.LIKELY if holder is not None else Confidence.POSSIBLE,
        fix=_fix(holder),
        first_step=first.step,
        last_step=last.step,
        strength=rose / LEAST_RISE,
    )


def _fix(holder: Holder | None) -> str | None:
    if holder is None:
        return None
    name = holder.name
    return f"Empty {name} when its values were used, {name}.clear(), or keep the latest only: {name} = deque(maxlen=100)."


def _size(size: float) -> str:
    for unit, number in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if size >= number:
            return f"{size / number:.3g} {unit}"
    return f"{size:.0f} bytes"
