"""A training of real digits, watched, as slow as it is told. Run: training.py FOLDER NAME LR STEPS PAUSE_SECONDS

One of its layers and the run itself have names that a page must not obey. After each step of a slow one it prints the time.
"""

import sys
import time
from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

import sleuth
from tests.material import digits

HOSTILE = "<img src=x onerror=hacked=1>"


def train(folder: Path, name: str, lr: float, steps: int, pause: float, clear: bool = True) -> None:
    torch.manual_seed(0)
    x, y = (torch.as_tensor(part) for part in digits())
    layers = OrderedDict([("first", nn.Linear(64, 32)), ("relu", nn.ReLU()), (HOSTILE, nn.Linear(32, 10))])
    model = nn.Sequential(layers)
    optimiser = torch.optim.SGD(model.parameters(), lr)
    with sleuth.watch(model, optimiser, name=name, directory=folder, quiet=True) as watch:
        for step in range(steps):
            rows = torch.randint(0, len(x), (32,))
            if clear:
                optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[rows].float()), y[rows].long()).backward()
            optimiser.step()
            if step % 20 == 19:
                watch.log(**{f"val_{HOSTILE}": 1.0 / step})
            if pause:
                print(time.time(), flush=True)
                time.sleep(pause)


if __name__ == "__main__":
    folder, name, lr, steps, pause = sys.argv[1:]
    train(Path(folder), name, float(lr), int(steps), float(pause))
