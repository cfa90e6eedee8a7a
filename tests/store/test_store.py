"""What was seen comes back as it was, after every kind of end."""

import math
from pathlib import Path

import numpy as np
import pytest

from sleuth.core.location import Location
from sleuth.core.observation import (
    Absent,
    Call,
    Evaluation,
    Frame,
    Layer,
    Observation,
    Role,
    Settings,
    Split,
    Step,
    Units,
)
from sleuth.core.statistics import pack, unpack
from sleuth.core.trial import Overfit
from sleuth.store.codec import decode, encode
from sleuth.store.reading import Run
from sleuth.store.writing import Writer

TABLE = np.random.default_rng(0).lognormal(0, 5, (3, 9))
THINGS = [
    Step(3, 0.5, 1e-3, calls=("zero_grad", "forward", "backward", "step"), seconds={"step": 0.01}),
    Step(4, None),
    Call("backward", 0, Location("train.py", 12, "loss.backward()")),
    Evaluation(5, Split.VALIDATION, {"loss": float("inf"), "accuracy": 0.5}),
    Absent(Role.GRADIENT, "nobody asked"),
    Absent(Step, "no loop"),
    Settings("torch", None, "Adam", 1e-3, {"betas": (0.9, 0.999)}),
    Overfit(4, 10, 0.0, "zero", (1.0, 0.5), 0.1),
    Layer("net.0", "Linear", "linear", {"in": 3}),
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda t: type(t).__name__)
def test_what_was_seen_comes_back_equal(thing: object) -> None:
    assert decode(encode(thing)) == thing


def test_arrays_come_back_equal() -> None:
    units = Units(1, "relu", "activation", "relu", 8, np.arange(4), np.zeros(4), np.ones(4, dtype=np.float32))
    back = decode(encode(units))
    for name in ("nonzero", "min", "max"):
        assert np.array_equal(getattr(back, name), getattr(units, name))
        assert getattr(back, name).dtype == getattr(units, name).dtype


def test_nothing_but_observations_can_be_built() -> None:
    with pytest.raises(KeyError):
        decode('{".is": "Popen", "args": "ls"}')


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_packing_keeps_the_scale_of_the_values(scale: float) -> None:
    row = np.array([[100.0, scale, 100 * scale**2, -scale, scale, 100 * scale, 3.0, 2.0, 1.0]])
    assert unpack(pack(row)) == pytest.approx(row, rel=1e-6)


ODD = [
    Step(1, None, float("nan")),
    Step(2, 0.5, np.float32(0.25)),
    Step(3, 0.5, gradient_norm=np.float32(0.25)),
    Step(4, float("inf"), optimiser=2**70),
    Step(5, 0.5, counts={"step": 1}, seconds={"step": 1.0, "data": 0.1}),
    Step(6, 0.5, counts={"step": 2}, seconds={"data": 1.0}, training=False),
]


def test_steps_with_odd_numbers_come_back_equal(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write(ODD)
    writer.close()
    with Run(tmp_path / "run.sqlite") as run:
        first, *others = run.observations()
    assert math.isnan(first.lr)
    assert others == ODD[1:]


def test_observations_come_back_in_their_order(tmp_path: Path) -> None:
    frame = Frame(2, Role.WEIGHT, ("a", "b", "c"), unpack(pack(TABLE)), np.ones((3, 32), dtype=np.int32), 1024)
    writer = Writer(tmp_path / "run.sqlite")
    given: list[Observation] = [THINGS[0], frame, THINGS[1], frame, THINGS[2]]
    writer.write(given[:2])
    writer.write(given[2:])
    writer.close()
    found = list(Run(tmp_path / "run.sqlite").observations())
    assert [type(o) for o in found] == [type(o) for o in given]
    assert found[0] == given[0]
    assert np.array_equal(found[1].table, frame.table)
    assert (found[1].paths, found[1].sampled, found[1].exponents.sum()) == (frame.paths, 1024, 96)
