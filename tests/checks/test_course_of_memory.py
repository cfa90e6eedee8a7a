"""The course of memory: what rises for ever, and what comes to rest."""

import pytest

from sleuth.checks import all_checks
from sleuth.core.engine import Engine
from sleuth.core.observation import Holder, Memory
from sleuth.core.stage import Severity

MB = 1 << 20


def judged(course: list[float], passes: list[int], holder: Holder | None = None):
    engine = Engine([c for c in all_checks() if c.name == "memory-grows"])
    for i, (megabytes, number) in enumerate(zip(course, passes, strict=True)):
        engine.emit(Memory(i * 10, int(megabytes * MB), number, (holder,) if holder and i == len(course) - 1 else ()))
    return engine.judge()


def rising(readings: int = 100, each: float = 3.0) -> list[float]:
    return [300 + each * i for i in range(readings)]


def test_memory_that_rises_through_many_passes_is_told() -> None:
    (found,) = judged(rising(), [1 + i // 10 for i in range(100)]).findings
    assert found.severity is Severity.WARNING


def test_a_list_that_explains_the_rise_is_named() -> None:
    holder = Holder("outputs", "3,120 tensors of shape (64, 10)", 3120, 250 * MB)
    (found,) = judged(rising(), [1 + i // 10 for i in range(100)], holder).findings
    assert (found.where, found.severity) == ("outputs", Severity.ERROR)
    assert "3,120 tensors of shape (64, 10)" in found.summary


@pytest.mark.parametrize(
    ("course", "passes"),
    [
        pytest.param([300 + 3 * min(i, 40) for i in range(100)], [1 + i // 40 for i in range(100)], id="a cache fills and stays"),
        pytest.param([300 + 200 * (1 - 0.95**i) for i in range(100)], [1 + i // 10 for i in range(100)], id="comes to rest"),
        pytest.param([300 + 8 * (i % 10) for i in range(100)], [1 + i // 10 for i in range(100)], id="let go after each epoch"),
        pytest.param([300 + 150 * (i % 7 == 0) for i in range(100)], [1 + i // 10 for i in range(100)], id="validation between"),
        pytest.param([300 + 0.3 * i for i in range(100)], [1 + i // 10 for i in range(100)], id="a log grows a little"),
        pytest.param([300 + 100 * (i > 50) for i in range(100)], [1 + i // 10 for i in range(100)], id="one step up"),
    ],
)
def test_memory_that_comes_to_rest_is_healthy(course: list[float], passes: list[int]) -> None:
    judgement = judged(course, passes)
    assert not judgement.findings
    assert judgement.clear == ("memory-grows",)


@pytest.mark.parametrize("passes", [0, 1])
def test_memory_that_rises_while_data_are_read_for_the_first_time_is_not_judged(passes: int) -> None:
    judgement = judged(rising(), [passes] * 100)
    assert not judgement.findings
    assert "memory rose by" in judgement.not_examined["memory-grows"]
