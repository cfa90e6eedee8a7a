"""Steps of several processes in turns, so that what slows the machine down slows all of them."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Long enough that the first step of a turn, with cold caches, does not decide.
STEPS_A_TURN = 10
# Compiling, first allocations, the first looks.
WARM_UP_TURNS = 4
# The memory of later steps is compared with this one's.
EARLY = 1000
# One thread. And glibc keeps what is freed: when it gives memory back depends on what a process freed before; without these two
# even two plain processes took steps that differed by an eighth, a plain and a watched one by a quarter (MLP of torch).
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
}


@dataclass(frozen=True)
class Way:
    """`kind`: plain, watched, every (each step in full), or one of others.py."""

    kind: str
    source: Path = ROOT / "src"
    steps: int | None = None  # at most; None: as many as asked for


@dataclass
class Taken:
    """What one way took, turn by turn; warm-up left out, but for memory."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.memory) * STEPS_A_TURN

    @property
    def growth(self) -> float:
        """Of memory, after the early steps."""
        return self.memory[-1] / self.memory[min(EARLY // STEPS_A_TURN, len(self.memory)) - 1]

    def pairs(self, other: "Taken") -> list[float]:
        """Of each turn, against the other's of the same round."""
        return [mine / yours for mine, yours in zip(self.wall, other.wall, strict=False)]

    def ratio(self, other: "Taken") -> float:
        return statistics.median(self.pairs(other))

    def processor_ratio(self, other: "Taken") -> float:
        """Of all threads and all turns: judging and writing included."""
        return sum(self.processor) / sum(other.processor[: len(self.processor)])


class Worker:
    """Stands still, threads and all, unless it is its turn."""

    def __init__(self, framework: str, training: str, way: Way) -> None:
        path = os.pathsep.join([str(way.source.resolve()), str(ROOT), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "benchmarks.watching.worker", framework, training, way.kind]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=ENVIRONMENT | os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.taken = Taken()
        self._processor = 0.0
        found = self._answer()["source"]
        if Path(found) != way.source.resolve():
            raise SystemExit(f"{framework}: python took sleuth from {found}, not from {way.source}")
        self.process.send_signal(signal.SIGSTOP)

    def take(self, *, counts: bool) -> None:
        self.process.send_signal(signal.SIGCONT)
        found = self._ask(STEPS_A_TURN)
        self.process.send_signal(signal.SIGSTOP)
        self.taken.memory.append(found["memory"])
        if counts:
            self.taken.wall.append(found["wall"])
            self.taken.processor.append(found["processor"] - self._processor)
        self._processor = found["processor"]

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.taken.ended = self._answer()
        self.process.wait()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _ask(self, steps: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a training ended before its time: {' '.join(self.process.args[2:])}")
        return json.loads(line)


@contextlib.contextmanager
def started(framework: str, training: str, ways: dict[str, Way]) -> Iterator[dict[str, Worker]]:
    workers: dict[str, Worker] = {}
    try:
        for name, way in ways.items():
            workers[name] = Worker(framework, training, way)
        yield workers
    finally:
        for worker in workers.values():
            worker.kill()


def take_turns(framework: str, training: str, ways: dict[str, Way], steps: int) -> dict[str, Taken]:
    """Who goes first changes from round to round."""
    with started(framework, training, ways) as workers:
        names = list(workers)
        for i in range(WARM_UP_TURNS + -(-steps // STEPS_A_TURN)):
            first = i % len(names)
            for name in names[first:] + names[:first]:
                limit = ways[name].steps
                if limit is None or (i - WARM_UP_TURNS) * STEPS_A_TURN < limit:
                    workers[name].take(counts=i >= WARM_UP_TURNS)
        for worker in workers.values():
            worker.end()
        return {name: worker.taken for name, worker in workers.items()}
