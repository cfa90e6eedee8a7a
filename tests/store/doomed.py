"""Trainings that are watched and killed at a random moment: `python -m tests.store.doomed FOLDER KILLS SEED`.

One process imports torch and forks a child a training, so that a hundred of them take minutes. Prints one line of JSON each:
the run's folder, the moment of the kill, and when which step was done (all by the same clock).
"""

import json
import os
import random
import signal
import struct
import sys
import time
import traceback
from pathlib import Path

import torch

import sleuth
from tests.watch import scenarios

LOOPS = (scenarios.adam, scenarios.gan, scenarios.lstm)
LONGEST_SECONDS = 2.0  # after the first step
DONE = struct.Struct("<qd")


def train(number: int, folder: Path, progress: int) -> None:
    training = LOOPS[number % len(LOOPS)]()
    a_step = len(training.optimisers)
    with sleuth.watch(training.model, training.optimisers, directory=folder, quiet=True, every=(1, None)[number % 2]):
        for step, _ in enumerate(training.loop(), start=1):
            os.write(progress, DONE.pack(step * a_step, time.monotonic()))


def kill_one(number: int, folder: Path, chance: random.Random) -> dict[str, object]:
    folder.mkdir()
    file = folder / "progress"
    progress = os.open(file, os.O_WRONLY | os.O_CREAT)
    child = os.fork()
    if child == 0:
        try:
            train(number, folder / "runs", progress)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(progress)
    while file.stat().st_size == 0:
        time.sleep(0.002)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the training ended by itself"
    time.sleep(chance.uniform(0, LONGEST_SECONDS))
    killed = time.monotonic()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    data = file.read_bytes()
    done = list(DONE.iter_unpack(data[: len(data) // DONE.size * DONE.size]))
    (run,) = (folder / "runs").iterdir()
    return {"run": str(run), "killed": killed, "done": done}


def main(folder: str, kills: str, seed: str) -> None:
    torch.set_num_threads(1)
    with sleuth.watch(scenarios.mlp(), directory=None, quiet=True) as w:  # everything is imported before the first child
        w.report()
    chance = random.Random(int(seed))
    for number in range(int(kills)):
        print(json.dumps(kill_one(number, Path(folder) / str(number), chance)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
