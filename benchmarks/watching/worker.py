"""One training in a process of its own: takes as many steps as a line asks for, answers with what they took.

Run by turns.py: python -m benchmarks.watching.worker FRAMEWORK TRAINING WAY
"""

import gc
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil

import sleuth
from benchmarks.watching.training import Training, Turns

Answer = Callable[..., None]


def turns(asked: TextIO, answer: Answer) -> Iterator[None]:
    memory = psutil.Process().memory_info
    gc.collect()
    for line in asked:
        began = time.perf_counter()
        for _ in range(int(line)):
            yield
        wall = time.perf_counter() - began
        # Since the process began, of all threads: nothing that is done between two turns is lost.
        answer(wall=wall, processor=time.process_time(), memory=memory().rss)


def take(training: Training, way: str, steps: Turns) -> dict[str, Any]:
    if way == "plain":
        training.plain(steps)
        return {}
    if way in ("watched", "every"):
        with tempfile.TemporaryDirectory() as folder:
            report = training.watched(steps, directory=folder, quiet=True, every=1 if way == "every" else None)
        return {"looks": report.overhead["recorded_steps"], "notes": list(report.notes)}
    from benchmarks.watching.others import OTHERS

    with OTHERS[way](training) as step:
        for _ in steps:
            step()
    return {}


def main() -> None:
    framework, name, way = sys.argv[1:]
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(**found: Any) -> None:
        print(json.dumps(found), file=answers, flush=True)

    training = importlib.import_module(f"benchmarks.watching.{framework}").TRAININGS[name]()
    answer(source=str(Path(sleuth.__file__).parent.parent))
    answer(**take(training, way, turns(sys.stdin, answer)))


if __name__ == "__main__":
    main()
