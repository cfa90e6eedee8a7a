"""The engine shows what was seen to the checks and keeps account of what could not be looked at."""

from collections.abc import Iterator

import pytest

from sleuth.core.check import Check, Evidence, NotExamined, Seen, check
from sleuth.core.engine import Engine, Judgement
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Batch, Role, Step
from sleuth.core.settings import Configuration
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Overfit


def make(body, *, reads=(Step,), severity=Severity.ERROR) -> Check:
    return check(code="T999", stage=Stage.TRAINING, severity=severity, reads=reads, title="Ill", why="Because.", fix="Stop it.")(
        body
    )


def high_loss(seen: Seen, *, limit: float = 1.0) -> Iterator[Evidence | NotExamined]:
    for step in seen.all(Step):
        if step.loss is not None and step.loss > limit:
            yield Evidence(f"loss {step.loss}", first_step=step.step, last_step=step.step, strength=step.loss)


def judge(*checks: Check, seen=(), configuration=None):
    engine = Engine(checks, configuration)
    for observation in seen:
        engine.emit(observation)
    return engine.judge()


def test_evidence_becomes_one_finding_with_first_and_last_step() -> None:
    steps = [Step(i, loss) for i, loss in enumerate([0.5, 2.0, 9.0, 3.0, 0.1])]
    (found,) = judge(make(high_loss), seen=steps).findings
    assert (found.name, found.first_step, found.last_step, found.times) == ("high-loss", 1, 3, 3)
    assert found.summary == "loss 9.0"


def test_no_evidence_is_clear() -> None:
    assert judge(make(high_loss), seen=[Step(0, 0.5)]).clear == ("high-loss",)


def test_what_was_never_seen_is_not_examined_and_not_clear() -> None:
    result = judge(make(high_loss))
    assert result.clear == ()
    assert result.not_examined == {"high-loss": "no training step was seen"}


def test_the_reason_of_an_absent_observation_is_passed_on() -> None:
    result = judge(make(high_loss, reads=(Overfit,)), seen=[Absent(Overfit, "the forward pass fails")])
    assert result.not_examined == {"high-loss": "the forward pass fails"}


def test_a_nested_tuple_means_any_one_of_them() -> None:
    result = judge(make(high_loss, reads=((Batch, Step),)), seen=[Step(0, 0.1)])
    assert result.clear == ("high-loss",)


def test_a_role_can_be_read() -> None:
    result = judge(make(high_loss, reads=(Role.GRADIENT,)))
    assert result.not_examined == {"high-loss": "no gradients were seen"}


def test_a_check_that_cannot_tell_is_not_clear() -> None:
    def undecided(seen: Seen) -> Iterator[Evidence | NotExamined]:
        yield NotExamined("too few steps")

    assert judge(make(undecided), seen=[Step(0, 1.0)]).not_examined == {"undecided": "too few steps"}


def test_a_check_that_raises_is_a_hint_about_sleuth() -> None:
    def broken(seen: Seen) -> Iterator[Evidence | NotExamined]:
        raise ZeroDivisionError("oops")
        yield

    result = judge(make(broken), make(high_loss), seen=[Step(0, 0.5)])
    assert [f.name for f in result.findings] == ["sleuth-failed"]
    assert result.findings[0].severity is Severity.HINT
    assert "broken raised ZeroDivisionError: oops" in result.findings[0].summary
    assert "broken" not in result.clear
    assert result.clear == ("high-loss",)


def test_an_ignored_finding_keeps_its_reason() -> None:
    configuration = Configuration(ignore={"high-loss": "it starts high"})
    result = judge(make(high_loss), seen=[Step(0, 5.0)], configuration=configuration)
    assert result.findings == ()
    assert result.ignored == {"high-loss": "it starts high"}


def test_a_threshold_of_the_settings_is_used() -> None:
    configuration = Configuration(thresholds={"high-loss": {"limit": 10.0}})
    assert judge(make(high_loss), seen=[Step(0, 5.0)], configuration=configuration).clear == ("high-loss",)


def test_only_selected_checks_are_asked() -> None:
    configuration = Configuration(select=("T000",))
    result = judge(make(high_loss), seen=[Step(0, 5.0)], configuration=configuration)
    assert (result.findings, result.clear, result.not_examined) == ((), (), {})


@pytest.mark.parametrize(
    "comment, reason",
    [
        ("# sleuth: ignore[high-loss] it is meant", "it is meant"),
        ("#sleuth:ignore[other, T999]: it is meant", "it is meant"),
        ("# sleuth: ignore[high-loss]", "the line says so, without a reason"),
        ("# sleuth: ignore[other] it is meant", None),
        ("# ignore[high-loss] it is meant", None),
    ],
)
def test_a_finding_is_allowed_on_the_line_that_it_names(comment: str, reason: str | None) -> None:
    here, elsewhere = Location("train.py", 3, f"loss.backward()  {comment}"), Location("train.py", 9, "loss.backward()")

    def at(*places: Location) -> Judgement:
        def high_loss(seen: Seen) -> Iterator[Evidence | NotExamined]:
            yield from (Evidence(summary="high", location=place) for place in places)

        return judge(make(high_loss), seen=[Step(0, 5.0)])

    alone, beside = at(here), at(here, elsewhere)
    assert alone.ignored == ({} if reason is None else {"high-loss": reason})
    assert alone.ignored_at == ({} if reason is None else {"high-loss": here})
    assert len(alone.findings) == (reason is None)
    assert "high-loss" not in alone.clear
    assert beside.findings[0].times == (2 if reason is None else 1), "what stands elsewhere is not allowed by it"
