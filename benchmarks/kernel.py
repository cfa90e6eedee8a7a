"""Statistics of tensors in one pass, against torch.sum and against the usual calls with .item(). One thread.

Run: ./dev bench kernel
"""

import time
from collections.abc import Callable

import numpy as np
import torch

from sleuth import kernel
from sleuth.adapters.torch.measuring import KINDS

MILLION = 1_000_000
# (elements, most that the pass may take of torch.sum's time)
BARS = ((MILLION, 3.3), (16 * MILLION, 1.2), (64 * MILLION, 1.2))
SMALL, SMALL_BAR = 300, 1.0
USUAL_BAR = 15.0


def interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The shortest time of each in seconds, taken in turns: what disturbs one disturbs the other."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, kept in zip((one, other), times, strict=True):
            begun = time.perf_counter()
            call()
            kept.append(time.perf_counter() - begun)
    return min(times[0]), min(times[1])


def fused(tensors: list[torch.Tensor]) -> Callable[[], None]:
    table = np.zeros((len(tensors), len(kernel.COLUMNS)))
    exponents = np.zeros((len(tensors), kernel.BINS), dtype=np.int32)
    return lambda: kernel.fused.measure(tensors, KINDS, table, exponents)


def usual(x: torch.Tensor) -> tuple[float, ...]:
    return tuple(v.item() for v in (x.mean(), x.std(), x.min(), x.max(), x.norm(), torch.isnan(x).any()))


def verdict(value: float, bar: float, *, least: bool = False) -> str:
    kept = value >= bar if least else value <= bar
    return f"(bar {'≥' if least else '≤'} {bar:g}: {'kept' if kept else 'MISSED'})"


def main() -> None:
    torch.set_num_threads(1)
    for count, bar in BARS:
        x = torch.randn(count)
        rounds = 400 if count == MILLION else 40
        plain, ours = interleaved(x.sum, fused([x]), rounds)
        print(
            f"{count:>11,} float32   torch.sum {plain * 1e6:9.1f} µs   statistics and exponents {ours * 1e6:9.1f} µs   "
            f"{ours / plain:5.2f} ×  {verdict(ours / plain, bar)}"
        )
    x = torch.randn(MILLION)
    items, ours = interleaved(lambda: usual(x), fused([x]), 60)
    print(
        f"{MILLION:>11,} float32   mean/std/min/max/norm/isnan with .item() {items * 1e6:.0f} µs   "
        f"{items / ours:5.1f} × as long  {verdict(items / ours, USUAL_BAR, least=True)}"
    )
    tensors = [torch.randn(8, 8) for _ in range(SMALL)]
    _, ours = interleaved(lambda: None, fused(tensors), 400)
    each = ours / SMALL * 1e6
    print(f"a list of {SMALL} tensors of 64 values: {each:.2f} µs a tensor  {verdict(each, SMALL_BAR)}")
    for name, other in {
        "half of it -inf (a mask)": torch.where(torch.rand(MILLION) < 0.5, -torch.inf, x),
        "values of 1e-30": x * 1e-30,
        "a mean of 1e4": x + 1e4,
        "float16": x.half(),
        "bfloat16": x.bfloat16(),
        "float64": x.double(),
        "int64": (x * 100).long(),
        "transposed": x.view(1000, 1000).t(),
        "every second column": torch.randn(1000, 2000)[:, ::2],
    }.items():
        _, ours = interleaved(lambda: None, fused([other]), 60)
        print(f"{MILLION:>11,} {name:<26} {ours * 1e6:9.1f} µs")


if __name__ == "__main__":
    main()
