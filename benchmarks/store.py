"""The size of a run on disk, and how long it takes to open it for a report.

A real training is watched at every step; after it the report is made from the file alone, in a process that has imported
everything already. Run: ./dev bench store [--steps 10000]
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

import sleuth
from sleuth.core.observation import Role
from sleuth.store.reading import Run, files_of

MEGABYTE = 1e6
BLOCKS = 30  # 300 rows of statistics a step: 60 parameters × (weight, gradient, update) and the outputs of 120 layers
TENSORS = 300
SIZE_BAR, SECONDS_BAR = 150.0, 2.0


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear, self.act, self.dropout = nn.Identity(), nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.3 * self.dropout(self.act(self.linear(self.norm(x))))


def verdict(value: float, bar: float) -> str:
    return f"(bar ≤ {bar:g}: {'kept' if value <= bar else 'MISSED'})"


def train(folder: Path, steps: int) -> sleuth.Report:
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(12) for _ in range(BLOCKS)))
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.randn(256, 12)
    y = x.roll(1, dims=1).sin()
    with sleuth.watch(model, optimiser, every=1, directory=folder, quiet=True) as w:
        for step in range(steps):
            rows = torch.randint(0, 256, (16,))
            optimiser.zero_grad()
            nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
            optimiser.step()
            if step % 500 == 499:
                w.log(val_loss=nn.functional.mse_loss(model(x), y).item())
    return w.report()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        live = train(Path(folder), steps)
        print(f"{steps:,} steps watched in full in {time.perf_counter() - began:.0f} s; {dict(live.overhead or {})}")
        (run,) = Path(folder).iterdir()
        measure(run, live, steps)


def measure(run: Path, live: sleuth.Report, steps: int) -> None:
    size = sum(file.stat().st_size for file in run.iterdir()) / MEGABYTE
    with Run(files_of(run)[0]) as opened:
        frames, values, others = (
            opened.rows(f"SELECT {what}")[0][0]
            for what in ("count(DISTINCT step) FROM frames", "sum(length(body)) FROM frames", "sum(length(body)) FROM log")
        )
    tensors = values / 36 / max(frames, 1)
    per_bar = size * (TENSORS * 10_000) / max(tensors * frames, 1)
    parts = f"statistics {values / MEGABYTE:.1f}, other notes {others / MEGABYTE:.1f}"
    print(f"{frames:,} steps × {tensors:.0f} tensors: {size:.1f} MB, of it {parts}")
    print(f"size for 10,000 steps × {TENSORS} tensors: {per_bar:.1f} MB  {verdict(per_bar, SIZE_BAR)}")
    times = []
    for _ in range(3):
        began = time.perf_counter()
        again = sleuth.load(run)
        times.append(time.perf_counter() - began)
    listed = ", ".join(f"{seconds:.2f}" for seconds in times)
    print(f"opened for a report in {max(times):.2f} s (of three: {listed})  {verdict(max(times), SECONDS_BAR)}")
    same = [f.summary for f in again.findings] == [f.summary for f in live.findings]
    print(f"the replay {'says what live said' if same else 'DIFFERS from live'}: {[f.name for f in again.findings]}")
    for name, question in {"curves": again.curves, "gradients": lambda: again.statistics(Role.GRADIENT)}.items():
        began = time.perf_counter()
        question()
        print(f"{name} as arrays in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
