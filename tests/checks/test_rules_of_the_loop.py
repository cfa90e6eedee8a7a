"""Rules of checks of the loop one by one, on what a watch would have told."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from sleuth.checks import all_checks
from sleuth.checks.training.precision_lost import FAINT_BIN
from sleuth.core.engine import Engine, Judgement
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Call, Frame, Observation, Optimiser, Parameter, Phase, Precision, Role, Step
from sleuth.core.settings import Configuration

TRAINED = ("zero_grad", "forward", "backward", "step")


def judge(name: str, observations: Iterable[Observation]) -> Judgement:
    engine = Engine(all_checks(), Configuration(select=[name]))
    for observation in observations:
        engine.emit(observation)
    judgement = engine.judge()
    assert not [f for f in judgement.findings if f.name != name], judgement.findings
    return judgement


def line(number: int) -> Location:
    return Location("train.py", number)


# A validation that builds a graph.

GRAPH = "validation-builds-graph"


def loop(*forwards: int) -> list[Observation]:
    steps = [Step(i, 1.0, calls=TRAINED, counts={"forward": count, "backward": 1}) for i, count in enumerate(forwards)]
    return [*steps, Call("forward", 0, line(3)), Call("forward", 10, line(9))]


def validation(step: int = 10, calls: int = 6, *, forwards: int | None = None, last: bool = False) -> Phase:
    return Phase(step, "forward", calls, forwards=calls + 1 if forwards is None else forwards, backwards=1, last=last)


def test_a_validation_is_named_at_its_own_line() -> None:
    (finding,) = judge(GRAPH, [*loop(*[1] * 20), validation()]).findings
    assert finding.location == line(9)


def test_nobody_knows_which_calls_are_extra_where_steps_differ() -> None:
    judgement = judge(GRAPH, [*loop(*[1, 2, 3, 4] * 5), validation()])
    assert "different number of times" in judgement.not_examined[GRAPH]


def test_four_steps_do_not_make_a_habit() -> None:
    assert GRAPH in judge(GRAPH, [*loop(*[1] * 4), validation()]).not_examined


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param(validation(calls=2), id="two calls may be a look at something"),
        pytest.param(validation(step=0), id="before the first step the model may be prepared"),
        pytest.param(validation(calls=3, forwards=3), id="the step used them all but two"),
    ],
)
def test_calls_that_are_no_validation_are_not_named(phase: Phase) -> None:
    assert GRAPH in judge(GRAPH, [*loop(*[1] * 20), phase]).clear


def test_what_is_left_at_the_end_may_be_a_step_that_was_not_finished() -> None:
    assert GRAPH in judge(GRAPH, [*loop(*[4] * 20), validation(calls=4, last=True)]).clear
    assert judge(GRAPH, [*loop(*[4] * 20), validation(calls=5, last=True)]).findings


# A scheduler before its optimiser.

SCHEDULER = "scheduler-before-optimiser"
EARLY = ("zero_grad", "forward", "backward", "scheduler", "step")
IN_TIME = ("scheduler", *TRAINED)


def scheduled(*calls: tuple[str, ...], optimiser: int = 0) -> list[Observation]:
    return [Step(i, 1.0, calls=names, optimiser=optimiser) for i, names in enumerate(calls)]


def test_the_line_of_the_optimiser_that_is_meant_is_named() -> None:
    calls = [Call("scheduler", 0, line(5)), Call("scheduler", 0, line(8), optimiser=1)]
    (finding,) = judge(SCHEDULER, [*calls, *scheduled(*[IN_TIME] * 9), *scheduled(*[EARLY] * 9, optimiser=1)]).findings
    assert finding.location == line(8)


def test_the_first_value_that_another_optimiser_skips_is_named_at_its_own_line() -> None:
    calls = [Call(kind, 0, line(5 + i), optimiser=i) for i in (0, 1) for kind in ("first-scheduler", "scheduler")]
    first = Step(0, 1.0, 0.1, calls=("first-scheduler", *TRAINED), counts={"first-scheduler": 1}, optimiser=1)
    (finding,) = judge(SCHEDULER, [*calls, *scheduled(*[TRAINED] * 9), first]).findings
    assert finding.location == line(6)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([EARLY] * 3 + [IN_TIME] * 9, id="three of twelve"),
        pytest.param([("step-of-another", "scheduler", "step")] * 9, id="another optimiser stepped since the backward"),
    ],
)
def test_a_scheduler_that_mostly_comes_in_time_is_not_named(steps: list[tuple[str, ...]]) -> None:
    assert SCHEDULER in judge(SCHEDULER, [Call("scheduler", 0, line(5)), *scheduled(*steps)]).clear


@pytest.mark.parametrize(("count", "places"), [(2, (5, 5)), (1, (5, 6))])
def test_a_schedule_that_is_wound_forward_is_meant(count: int, places: tuple[int, int]) -> None:
    calls = [Call("first-scheduler", 0, line(places[0])), Call("scheduler", 1, line(places[1]))]
    first = Step(0, 1.0, calls=("first-scheduler", *TRAINED), counts={"first-scheduler": count})
    assert SCHEDULER in judge(SCHEDULER, [*calls, first, *scheduled(*[TRAINED] * 9)]).clear


# Optimisers that are made anew.

REBUILT = "optimiser-rebuilt"


def rebuilt(times: int = 6, **changes: object) -> list[Observation]:
    """One an epoch; `changes` hold for all but the first."""
    told = {"predecessor_steps": 40, "shared": 4, "predecessor_parameters": 4, "passes": 1, "kind": "Adam", "parameters": 4}
    told = {**told, "stateful": True, **changes}
    first = Optimiser(0, 0, "Adam", 4, stateful=True)
    return [Step(0, 1.0, calls=TRAINED), first, *(Optimiser(40 * i, i, predecessor=i - 1, **told) for i in range(1, times))]


def again(number: int) -> list[Observation]:
    return [replace(o, returned=True) for o in rebuilt() if isinstance(o, Optimiser) and o.number == number]


def test_an_optimiser_for_each_epoch_is_named() -> None:
    (finding,) = judge(REBUILT, rebuilt(4)).findings
    assert finding.numbers["optimisers"] == 4
    assert finding.first_step == 40


def test_one_for_each_step_is_named_without_a_loader() -> None:
    assert judge(REBUILT, rebuilt(4, passes=0, predecessor_steps=1)).findings


@pytest.mark.parametrize(
    "observations",
    [
        pytest.param(rebuilt(3), id="twice is a new phase"),
        pytest.param(rebuilt(passes=2), id="phases of two epochs"),
        pytest.param(rebuilt(5, passes=0), id="four times, and no loader tells the epochs"),
        pytest.param(rebuilt(9, passes=0, predecessor_steps=201), id="long ones, and no loader tells the epochs"),
        pytest.param(rebuilt(shared=3), id="other parameters"),
        pytest.param(rebuilt(predecessor_parameters=6), id="fewer parameters"),
        pytest.param(rebuilt(stateful=False), id="there is no state"),
        pytest.param(rebuilt(carried=True), id="the state is handed on"),
        pytest.param(rebuilt(rewritten=True), id="the weights were set in between"),
        pytest.param([o for o in rebuilt(kind="LBFGS") if not isinstance(o, Optimiser) or o.number], id="a known method"),
        pytest.param(rebuilt(4, kind="SGD")[:2] + rebuilt(4, kind="SGD")[2:5], id="another method, then twice the same"),
        pytest.param([*rebuilt(3), *(o for o in again(2) for _ in range(2))], id="one comes back, again and again"),
        pytest.param([*rebuilt(), *(Optimiser(300, i, "Adam", 4, True, returned=True) for i in range(6))], id="they take turns"),
    ],
)
def test_optimisers_that_are_made_anew_with_reason_are_not_named(observations: list[Observation]) -> None:
    assert REBUILT in judge(REBUILT, observations).clear


def few_steps(count: int, *, stateful: bool) -> list[Observation]:
    return [Optimiser(0, 0, "SGD", 4, stateful=stateful), *(Step(i, 1.0, calls=TRAINED) for i in range(count))]


def test_steps_too_few_for_three_new_optimisers_are_not_examined() -> None:
    assert judge(REBUILT, few_steps(3, stateful=True)).not_examined[REBUILT] == "only 3 steps were seen"
    assert REBUILT in judge(REBUILT, few_steps(4, stateful=True)).clear


def test_an_optimiser_without_state_has_none_to_lose_however_few_the_steps() -> None:
    assert REBUILT in judge(REBUILT, few_steps(1, stateful=False)).clear


# Half precision: a scaler keeps faint gradients alive, and shows by numbers that float16 does not have.


def faint(below: int) -> list[Observation]:
    weights = tuple(
        Parameter(f"{i}.weight", (8, 8), "float32", "cpu", True, True, layer=str(i), family="linear") for i in range(2)
    )
    paths = tuple(p.path for p in weights)
    bins = np.zeros((2, 34), dtype=np.int64)
    bins[:, FAINT_BIN], bins[:, FAINT_BIN - 1] = 64 - below, below
    table = np.zeros((2, 9))
    table[:, 0] = 64
    frames = [Frame(i, role, paths, table, bins) for i in range(12) for role in (Role.GRADIENT, Role.UPDATE, Role.WEIGHT)]
    steps = [Step(i, 2.3, 0.1) for i in range(60)]
    return [Architecture((), weights), Precision(0, {"0": "float16", "1": "float16"}), *frames, *steps]


@pytest.mark.parametrize(("below", "named"), [(0, True), (1, False)])
def test_numbers_that_float16_does_not_have_show_a_scaler(below: int, named: bool) -> None:
    assert bool(judge("precision-lost", faint(below)).findings) == named
