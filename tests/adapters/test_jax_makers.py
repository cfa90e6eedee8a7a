"""The user's line that made an optimiser or a schedule of optax is known, whatever stands around the schedule."""

import inspect
from collections.abc import Callable
from typing import Any

import optax
import pytest

from sleuth.adapters import adapter_named
from sleuth.adapters.jax.watching.created_at import made_at, scheduled_at

BEGINS = {
    "exponential": lambda: optax.exponential_decay(1e-3, 1, 0.9),
    "cosine": lambda: optax.warmup_cosine_decay_schedule(0.0, 1e-3, 5, 50),
    "joined": lambda: optax.join_schedules([lambda step: 1e-3, lambda step: 1e-4], [10]),
    "by hand": lambda: lambda step: 1e-3 / (1 + step),
}
AROUND: dict[str, Callable[[Any], Any]] = {
    "alone": lambda rate: optax.adam(rate),
    "chained": lambda rate: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("schedule", BEGINS)
def test_the_line_of_a_schedule_is_known(schedule: str, around: str) -> None:
    discovering: Any = adapter_named("jax").discover(lambda found: None)  # type: ignore[union-attr, arg-type]
    discovering.open()
    try:
        made = AROUND[around](BEGINS[schedule]())
    finally:
        discovering.close()
    wanted = inspect.getsourcelines(BEGINS[schedule])[1]
    scheduled, optimiser = scheduled_at(made), made_at(made)
    assert scheduled is not None
    assert optimiser is not None
    assert scheduled.line == wanted
    assert optimiser.line == inspect.getsourcelines(AROUND[around])[1]


def test_a_rate_that_is_a_number_has_no_schedule() -> None:
    assert scheduled_at(optax.adam(1e-3)) is None
