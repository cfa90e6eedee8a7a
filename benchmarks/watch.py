"""What watching costs: trainings alike in processes of their own, plain and watched, take their steps in turns, on one thread.

Run: ./dev bench watch                         PyTorch
     ./dev bench watch jax numpy               these frameworks (torch, jax, keras, mlx, numpy)
     ./dev bench watch --against ../other      also watched by the sleuth of another checkout: plain : base : here
     ./dev bench watch --steps 20000 --ours    whether memory grows

Rows: median of the turns' ratios; processor time of all turns, our own thread, judging and writing included; memory.
"""

import argparse
import importlib
import statistics
from pathlib import Path

from benchmarks.watching.turns import STEPS_A_TURN, Taken, Way, take_turns

FRAMEWORKS = ("torch", "jax", "keras", "mlx", "numpy")
DEFAULT_BAR = 1.02
# Of PyTorch only.
EVERY_BAR, MEMORY_BAR = 1.06, 1.05
# Each look costs the same, so that few will do.
STEPS_IN_FULL = 300
NOISE, HERE, BASE, FULL = "plain again", "watched by default", "watched by the other checkout", "watched, every step in full"


def choose_ways(framework: str, *, ours: bool, against: Path | None) -> tuple[dict[str, Way], dict[str, str]]:
    """By name, and why others are left out."""
    ways = {"plain": Way("plain"), NOISE: Way("plain", steps=STEPS_IN_FULL)}
    if against is not None:
        ways[BASE] = Way("watched", against)
    ways |= {HERE: Way("watched"), FULL: Way("every", steps=STEPS_IN_FULL)}
    if framework != "torch" or ours or against is not None:
        return ways, {}
    from benchmarks.watching.others import OTHERS, missing

    absent = {name: why for name in OTHERS if (why := missing(name))}
    return ways | {name: Way(name, steps=STEPS_IN_FULL // 3) for name in OTHERS if name not in absent}, absent


def judged(value: float, bar: float) -> str:
    return f"{value:.3f} × (bar ≤ {bar:g}: {'kept' if value <= bar else 'MISSED'})"


def row(name: str, taken: Taken, plain: Taken, *, torch: bool) -> str:
    step, processor, memory = taken.ratio(plain), taken.processor_ratio(plain), max(taken.memory) / max(plain.memory)
    every = name == FULL and torch
    parts = [f"{judged(step, EVERY_BAR) if every else f'{step:.3f} ×'} a step"]
    parts.append(f"{judged(processor, DEFAULT_BAR) if name == HERE else f'{processor:.3f} ×'} processor time")
    if name == HERE:
        more = max(taken.memory) - max(plain.memory) >> 20
        parts.append(f"{judged(memory, MEMORY_BAR) if torch else f'{more} MiB more'} memory, growth {taken.growth:.3f} ×")
        parts.append(f"worst turn {max(taken.pairs(plain)):.1f} ×")
    if "looks" in taken.ended:
        parts.append(f"{taken.ended['looks']} of {taken.steps} steps in full")
    return "; ".join(parts)


def compare(taken: dict[str, Taken]) -> str:
    plain, base, here = taken["plain"], taken[BASE], taken[HERE]
    low, _, high = statistics.quantiles(here.pairs(base), n=4)
    return (
        f"  plain : base : here   1 : {base.ratio(plain):.3f} : {here.ratio(plain):.3f} a step, "
        f"1 : {base.processor_ratio(plain):.3f} : {here.processor_ratio(plain):.3f} processor time\n"
        f"  here against base     {here.ratio(base):.3f} × a step (middle half {low:.3f} to {high:.3f}), "
        f"{here.processor_ratio(base):.3f} × processor time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=", ".join(FRAMEWORKS))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", default="", help="part of a training's name")
    parser.add_argument("--ours", action="store_true", help="leave out what else people put around a training")
    parser.add_argument(
        "--against", type=Path, metavar="DIR", help="another checkout of sleuth, its kernel built like this one's"
    )
    options = parser.parse_args()
    if unknown := {*options.frameworks} - {*FRAMEWORKS}:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(FRAMEWORKS)}")
    against = None if options.against is None else options.against / "src"
    if against is not None and not (against / "sleuth").is_dir():
        parser.error(f"there is no src/sleuth below {options.against}")
    for framework in options.frameworks or ["torch"]:
        for name in importlib.import_module(f"benchmarks.watching.{framework}").TRAININGS:
            if options.only in name:
                measure(framework, name, options.steps, ours=options.ours, against=against)


def measure(framework: str, training: str, steps: int, *, ours: bool, against: Path | None) -> None:
    ways, absent = choose_ways(framework, ours=ours, against=against)
    taken = take_turns(framework, training, ways, steps)
    plain = taken["plain"]
    print(f"\n{framework}, {training}: a plain step takes {statistics.median(plain.wall) / STEPS_A_TURN * 1e3:.2f} ms")
    for name, one in taken.items():
        if name != "plain":
            print(f"  {name:<30} {row(name, one, plain, torch=framework == 'torch')}")
    for name, why in absent.items():
        print(f"  {name:<30} {why}")
    if against is not None:
        print(compare(taken))
    for note in taken[HERE].ended["notes"]:
        print(f"  note: {note}")


if __name__ == "__main__":
    main()
