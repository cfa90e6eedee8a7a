"""`summary` against torchinfo, `landscape` against a loop written by hand: are the numbers the same, and what does it cost?

Both sides run in turns, so that a busy machine slows them alike; the ratio of the medians is what counts.
Run: ./dev bench instruments
"""

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torchinfo
from torch import nn

import sleuth
from sleuth.instruments.directions import filter_normalised, moved
from tests.material import digits

TURNS = 7
POINTS = 15


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    convolutions = [nn.Conv2d(a, b, 3, padding=1) for a, b in ((3, 64), (64, 64), (64, 128), (128, 128), (128, 256))]
    parts = [part for conv in convolutions for part in (conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU())]
    return {
        "CNN of 5 convolutions": (
            nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)),
            torch.rand(8, 3, 32, 32),
        ),
        "transformer of 6 blocks": (nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), torch.rand(4, 64, 256)),
        "MLP of 100 layers": (nn.Sequential(*(nn.Linear(64, 64) for _ in range(100))), torch.rand(32, 64)),
    }


def seconds(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    ours()
    theirs()
    taken = np.array([(seconds(ours), seconds(theirs)) for _ in range(TURNS)])
    return float(np.median(taken[:, 0])), float(np.median(taken[:, 1]))


def compare_summaries() -> None:
    print("summary against torchinfo")
    for name, (model, x) in models().items():
        ours, theirs = sleuth.summary(model, x), torchinfo.summary(model, input_data=x, verbose=0)
        same = (ours.parameters, ours.trainable) == (theirs.total_params, theirs.trainable_params)
        own, other = in_turns(
            lambda model=model, x=x: sleuth.summary(model, x),
            lambda model=model, x=x: torchinfo.summary(model, input_data=x, verbose=0),
        )
        print(f"  {name:26} parameters {'equal' if same else 'DIFFER'}  {ours.flops / 1e6:9.1f} MFLOPs", end="")
        print(f" (torchinfo: {2 * theirs.total_mult_adds / 1e6:.1f})", end="  ")
        print(f"{own * 1e3:7.1f} ms / {other * 1e3:7.1f} ms = {own / other:.2f}")


def by_hand(model: nn.Module, x: torch.Tensor, y: torch.Tensor, seed: int = 0) -> np.ndarray:
    """The same grid, as one would write it."""
    own = copy.deepcopy(model).eval()
    weights = {name: p.detach().numpy().copy() for name, p in own.named_parameters()}
    generator = np.random.default_rng(seed)
    directions = [filter_normalised(weights, generator) for _ in range(2)]
    distances = np.linspace(-1, 1, POINTS)
    losses = np.zeros((POINTS, POINTS))
    with torch.no_grad():
        for i, j in np.ndindex(POINTS, POINTS):
            places = moved(weights, directions, (float(distances[i]), float(distances[j])))
            for name, parameter in own.named_parameters():
                if name in places:
                    parameter.copy_(torch.as_tensor(places[name]))
            losses[i, j] = nn.functional.cross_entropy(own(x), y).item()
    return losses


def compare_landscapes() -> None:
    print("landscape against a loop by hand, on the same directions")
    x, y = (torch.as_tensor(part) for part in digits())
    x = x.float().reshape(len(x), -1)[:256]
    y = y[:256]
    for name, model in {
        "MLP 64-128-10": nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)),
        "MLP 64-512-512-10": nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
    }.items():

        def ours(model: nn.Module = model) -> Any:
            return sleuth.landscape(model, [(x, y)], loss=nn.functional.cross_entropy, points=POINTS, progress=False)

        found, hand = ours().losses, by_hand(model, x, y)
        worst = float(np.abs(found - hand).max() / np.abs(hand).max())
        own, other = in_turns(ours, lambda model=model: by_hand(model, x, y))
        print(f"  {name:26} worst difference {worst:.1e}  {own:.2f} s / {other:.2f} s = {own / other:.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    compare_summaries()
    compare_landscapes()
