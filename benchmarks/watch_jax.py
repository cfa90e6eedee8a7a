"""What watching a compiled step of JAX costs: plain and watched steps of one training, taken in turns in one process.

Run: ./dev bench watch_jax            (--help: more steps)
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import sleuth

DEFAULT_BAR = 1.02
WARM_UP = 60

Step = Callable[..., Any]


def mlp(sizes: list[int], batch: int) -> tuple[Step, tuple[Any, ...]]:
    keys = jax.random.split(jax.random.key(0), len(sizes))
    shapes = zip(keys, sizes, sizes[1:], strict=False)
    params = [(jax.random.normal(k, (a, b)) * np.sqrt(2 / a), jnp.zeros(b)) for k, a, b in shapes]
    tx = optax.adam(1e-3)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(batch, sizes[0])), jnp.float32)
    y = jnp.asarray(rng.integers(0, sizes[-1], batch))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        scores = x @ params[-1][0] + params[-1][1]
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, (params, tx.init(params), x, y)


TRAININGS: dict[str, Callable[[], tuple[Step, tuple[Any, ...]]]] = {
    "MLP 64-64-64-10, batch 64": lambda: mlp([64, 64, 64, 10], 64),
    "MLP 784-512-256-10, batch 128": lambda: mlp([784, 512, 256, 10], 128),
    "MLP of 20 layers of 128, batch 64": lambda: mlp([128] * 20 + [10], 64),
}


def taken(step: Step, given: tuple[Any, ...]) -> tuple[float, tuple[Any, ...]]:
    began = time.perf_counter()
    params, state, loss = step(*given)
    loss.block_until_ready()
    return time.perf_counter() - began, (params, state, *given[2:])


def in_turns(plain: Step, other: Step, given: tuple[Any, ...], steps: int) -> tuple[list[float], list[float]]:
    """Twins from the same weights; which goes first changes from pair to pair."""
    seconds: tuple[list[float], list[float]] = ([], [])
    states = [given, given]
    for i in range(steps + WARM_UP):
        for which in (0, 1) if i % 2 else (1, 0):
            took, states[which] = taken((plain, other)[which], states[which])
            if i >= WARM_UP:
                seconds[which].append(took)
    return seconds


def ratio(plain: list[float], other: list[float]) -> float:
    """Of each pair, and the median of those: what slows the machine down slows both."""
    return statistics.median(o / p for o, p in zip(other, plain, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--only", default="", help="part of a training's name")
    options = parser.parse_args()
    for name, make in TRAININGS.items():
        if options.only not in name:
            continue
        step, given = make()
        noise = in_turns(step, step, given, max(200, options.steps // 10))
        print(f"\n{name}: a plain step takes {statistics.median(noise[0]) * 1e6:.0f} µs")
        print(f"  plain against plain    {ratio(*noise):6.3f} ×", flush=True)
        watched = sleuth.watch_step(step, directory=None, quiet=True)
        plain, ours = in_turns(step, watched, given, options.steps)
        watched.close()
        watch = watched.watch
        assert watch is not None
        total = (sum(ours) + watch.thread_seconds) / sum(plain)
        kept = "kept" if total <= DEFAULT_BAR else "MISSED"
        print(f"  watched by default     {total:6.3f} × in all, our thread included (bar ≤ {DEFAULT_BAR:g}: {kept})")
        print(f"                         {ratio(plain, ours):6.3f} × a step; quickest steps {min(ours) / min(plain):.3f} ×")
        print(f"                         {watch.watching.looks} of {watch.watching.steps} steps in full", flush=True)
        watched = sleuth.watch_step(step, directory=None, quiet=True, every=1)
        plain, ours = in_turns(step, watched, given, 100)
        watched.close()
        print(f"  every step in full     {ratio(plain, ours):6.3f} × a step", flush=True)


if __name__ == "__main__":
    main()
