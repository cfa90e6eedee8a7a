"""A stand-in for gymnasium: the pole on a cart, by its equations of motion (Barto, Sutton and Anderson, 1983)."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
FURTHEST, STEEPEST, LONGEST = 2.4, 12 * math.pi / 180, 500


class CartPole:
    spec = SimpleNamespace(reward_threshold=475.0)

    def __init__(self) -> None:
        self.chance = np.random.default_rng(0)
        self.state, self.steps = np.zeros(4), 0

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        if seed is not None:
            self.chance = np.random.default_rng(seed)
        self.state, self.steps = self.chance.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        _place, speed, angle, turning = self.state
        force = FORCE if action == 1 else -FORCE
        total = CART + POLE
        push = (force + POLE * HALF_LENGTH * turning**2 * math.sin(angle)) / total
        fall = GRAVITY * math.sin(angle) - math.cos(angle) * push
        bend = fall / (HALF_LENGTH * (4 / 3 - POLE * math.cos(angle) ** 2 / total))
        drive = push - POLE * HALF_LENGTH * bend * math.cos(angle) / total
        change = np.array([speed, drive, turning, bend])
        self.state = self.state + SECONDS * change
        self.steps += 1
        fallen = bool(abs(self.state[0]) > FURTHEST or abs(self.state[2]) > STEEPEST)
        return self.state.astype(np.float32), 1.0, fallen, self.steps >= LONGEST, {}


def make(name: str, **_: Any) -> CartPole:
    if name != "CartPole-v1":
        raise ValueError(f"the stand-in knows no {name}")
    return CartPole()
