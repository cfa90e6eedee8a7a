"""What watching costs: plain steps and watched steps of twin trainings, taken in turns in one process, on one thread.

Run: ./dev bench watch            (--help: fewer trainings, more steps, memory)
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.watching import ways
from benchmarks.watching.trainings import TRAININGS, Training

EVERY_BAR, DEFAULT_BAR, MEMORY_BAR = 1.06, 1.02, 1.05
WARM_UP = 30


@dataclass(frozen=True)
class Turns:
    """Seconds of each step, wall and processor of the training's thread."""

    plain: list[float]
    watched: list[float]
    plain_cpu: float
    watched_cpu: float

    @property
    def ratio(self) -> float:
        """Of each pair, and the median of those: what slows the machine down slows both."""
        return statistics.median(w / p for w, p in zip(self.watched, self.plain, strict=True))

    @property
    def least(self) -> float:
        """Of the quickest steps: what is left when the machine does nothing else."""
        return min(self.watched) / min(self.plain)


def taken(step: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.thread_time(), time.perf_counter()
    step()
    return time.perf_counter() - wall, time.thread_time() - cpu


def in_turns(make: Callable[[], Training], way: ways.Way, steps: int, *, twins: bool = False) -> Turns:
    """Plain and watched steps in turns; which goes first changes from pair to pair.

    One training takes both, and during a plain step nothing of the watch is in torch: twins differ by where their memory lies.
    Twins are for ways that cannot be put to sleep.
    """
    torch.manual_seed(0)
    other = make()
    torch.manual_seed(0)
    one = make() if twins else other
    sleeping = ways.Sleeping(one.optimiser)
    plain: list[tuple[float, float]] = []
    watched: list[tuple[float, float]] = []
    gc.collect()
    with way(other) as step:
        for i in range(steps + WARM_UP):
            for which in (0, 1) if i % 2 else (1, 0):
                if which == 0:
                    with sleeping:
                        found = taken(one.step)
                else:
                    found = taken(step)
                if i >= WARM_UP:
                    (plain if which == 0 else watched).append(found)
    return Turns([w for w, _ in plain], [w for w, _ in watched], sum(c for _, c in plain), sum(c for _, c in watched))


def verdict(value: float, bar: float) -> str:
    return f"(bar ≤ {bar:g}: {'kept' if value <= bar else 'MISSED'})"


def every_step(make: Callable[[], Training], steps: int) -> str:
    turns = in_turns(make, ways.watch(every=1), steps)
    own = ways.Sleeping.watch.thread_seconds / sum(turns.plain)
    mine = f"{turns.ratio:6.3f} × a step {verdict(turns.ratio, EVERY_BAR)}; quickest steps {turns.least:.3f} ×"
    return f"{mine}; our thread {own:.1%} of the time beside it"


def by_default(make: Callable[[], Training], steps: int) -> str:
    """Totals: sampled steps, the writer and the judging included; all that our own thread did is charged to watching."""
    turns = in_turns(make, ways.watch(), steps)
    watch = ways.Sleeping.watch
    thread = watch.thread_seconds
    wall = (sum(turns.watched) + thread) / sum(turns.plain)
    cpu = (turns.watched_cpu + thread) / turns.plain_cpu
    worst = max(turns.watched) / statistics.median(turns.plain)
    return (
        f"{cpu:6.3f} × processor time {verdict(cpu, DEFAULT_BAR)}; {wall:.3f} × wall {verdict(wall, DEFAULT_BAR)}; "
        f"worst step {worst:.1f} × (plain: {max(turns.plain) / statistics.median(turns.plain):.1f} ×); "
        f"{watch.watching.looks} of {watch.watching.steps} steps in full; the report says {watch.overhead['ratio']:.3f}"
    )


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def memory(make: Callable[[], Training], steps: int) -> str:
    """Resident memory while watching, against the same training before; then its growth over many steps."""
    training = make()
    for _ in range(200):
        training.step()
    before = resident()
    with ways.watch()(training) as step:
        for _ in range(1000):
            step()
        early = resident()
        for _ in range(steps - 1000):
            step()
        late = resident()
    peak, growth = max(early, late) / before, late / early
    return (
        f"{before >> 20} MiB plain, {early >> 20} MiB after 1,000 watched steps, {late >> 20} MiB after {steps:,}: "
        f"{peak:.3f} × {verdict(peak, MEMORY_BAR)}, growth {growth:.3f} ×"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--default-steps", type=int, default=3000)
    parser.add_argument("--only", default="", help="part of a training's name")
    parser.add_argument("--memory", action="store_true", help="also 20,000 steps of each, for memory")
    parser.add_argument("--ours", action="store_true", help="leave the others out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, make in TRAININGS.items():
        if options.only not in name:
            continue
        noise = in_turns(make, ways.plain, options.steps)
        print(f"\n{name}: a plain step takes {statistics.median(noise.plain) * 1e3:.2f} ms")
        print(f"  plain against plain            {noise.ratio:6.3f} ×; quickest steps {noise.least:.3f} ×", flush=True)
        print(f"  watch, everything every step   {every_step(make, options.steps)}", flush=True)
        print(f"  watch by default               {by_default(make, options.default_steps)}", flush=True)
        if options.memory:
            print(f"  memory                         {memory(make, 20_000)}", flush=True)
        for other, way in ({} if options.ours else ways.others()).items():
            told = way if isinstance(way, str) else f"{in_turns(make, way, max(60, options.steps // 3), twins=True).ratio:6.3f} ×"
            print(f"  {other:<30} {told}", flush=True)


if __name__ == "__main__":
    main()
