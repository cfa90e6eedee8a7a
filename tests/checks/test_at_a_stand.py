"""Parts and trainings that never move: told from those that only look alike."""

import numpy as np
import pytest

from sleuth import kernel
from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.finding import Finding
from sleuth.core.location import locate
from sleuth.core.observation import Architecture, Ending, Frame, Layer, Parameter, Role, Step
from sleuth.core.stage import Severity
from sleuth.core.trial import Connection, Cut, Overfit, RangeTest


def judged(name: str, *seen: object) -> tuple[Finding, ...]:
    engine = Engine([c for c in all_checks() if c.name == name])
    for one in seen:
        engine.emit(one)  # type: ignore[arg-type]
    return tuple(engine.judge().findings)


def losses(first: float, last: float, steps: int = 240) -> list[Step]:
    noise = np.random.default_rng(0).normal(0, 0.01, steps)
    return [Step(i + 1, float(v), 1e-5) for i, v in enumerate(np.linspace(first, last, steps) + noise)]


def trial(own: float, tuned: float, rate: float = 2e-3) -> Overfit:
    ends = [tuple(np.linspace(2.3, 2.3 * left, 100).tolist()) for left in (own, tuned)]
    return Overfit(16, 100, 0.0, "zero", ends[0], 1e-5, tuned_lr=rate, tuned_losses=ends[1])


@pytest.mark.parametrize(
    ("last", "own", "tuned", "rate", "is_said"),
    [
        (2.29, 0.97, 0.01, 2e-3, True),
        (1.9, 0.97, 0.01, 2e-3, False),  # the training gets on
        (2.29, 0.5, 0.01, 2e-3, False),  # so does one batch, at this rate
        (2.29, 0.97, 0.6, 2e-3, False),  # no rate learns it
        (2.29, 0.97, 0.01, 1e-4, False),  # ten times more is a matter of taste
    ],
)
def test_a_rate_is_too_low_where_a_whole_training_stood_still(
    last: float, own: float, tuned: float, rate: float, is_said: bool
) -> None:
    test = RangeTest((1e-5, 1e-4), (2.3, 2.3), 0.01, 1e-4, "", 1e-5, ((1e-5, 2.3, 2.299), (1e-4, 2.3, 2.29)), 40)
    found = judged("learning-rate-too-low", *losses(2.31, last), Ending(240), test, trial(own, tuned, rate))
    assert [f.name for f in found] == (["learning-rate-too-low"] if is_said else [])


def frames(moves: bool, copied: bool) -> list[Frame]:
    rng = np.random.default_rng(1)
    leader, twin = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    twin = leader.copy() if copied else twin
    found = []
    for step in range(1, 13):
        rows = kernel.measure([leader + 0.01 * (step - 1), twin + (0.01 * step if moves else 0.0)])
        found.append(Frame(step, Role.WEIGHT, ("one.weight", "two.weight"), rows))
    return found


@pytest.mark.parametrize(("moves", "copied", "is_said"), [(False, False, True), (True, False, False), (False, True, False)])
def test_a_twin_that_is_cut_off_follows_nobody_if_it_never_moved_nor_was_a_copy(moves: bool, copied: bool, is_said: bool) -> None:
    shapes = {"one.weight": (4, 4), "one.bias": (4,), "two.weight": (4, 4), "two.bias": (4,)}
    weights = tuple(Parameter(path, shape, "float32", "cpu", True, True, path[:3], "linear") for path, shape in shapes.items())
    missing = ("two.weight", "two.bias")
    cut = Cut("detach", None, locate(__file__, 1), True, missing)
    found = judged("disconnected-parameters", Architecture((), weights), Connection(4, missing, (cut,)), *frames(moves, copied))
    assert [(f.name, f.severity) for f in found] == ([("disconnected-parameters", Severity.WARNING)] if is_said else [])


def test_fading_gradients_have_the_line_of_the_activations_that_hold_them_back() -> None:
    paths = [f"layers.{i}.weight" for i in range(0, 10, 2)]
    layers = [Layer(f"layers.{i}", "Sigmoid", "activation", {"activation": "sigmoid"}, locate(__file__, 2)) for i in (1, 3, 5)]
    weights = tuple(Parameter(p, (8, 8), "float32", "cpu", True, True, p.rpartition(".")[0], "linear") for p in paths)
    sizes = [np.full((8, 8), 10.0**power) for power in (-8, -6, -4, -2, -1)]
    frame = Frame(1, Role.GRADIENT, tuple(paths), kernel.measure(sizes))
    for some, line in ((layers, 2), (layers[:2], None)):
        (found,) = judged("vanishing-gradients", Architecture(tuple(some), weights), frame)
        assert (None if found.location is None else found.location.line) == line
