"""`./dev new-check` writes two files that can be imported and say what they ask for; `./dev check` runs them to the end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.checks import all_checks
from sleuth.core.stage import Stage
from sleuth.core.trial import Overfit
from sleuth.testing import discover
from tests.authoring.advice import speaks_torch
from tests.authoring.naming import ROOT, NameRefused, Place, free_code, known_place, new_place, similar
from tests.authoring.prompts import prompts_left
from tests.authoring.runs import Outcome, Run
from tests.authoring.skeleton import case_text, check_text
from tests.authoring.verdicts import beside, other_faults, own_faults, sick_others
from tests.kits.torch_kit import TorchKit

NAME = "purple-hats"
PARTS = ("src", "tests", "docs", "benchmarks", "pyproject.toml", "CHANGELOG.md", "LICENSE", "requirements")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Purple", "lower-case words"),
        ("purple hats", "lower-case words"),
        ("check-gradients", "named after the illness"),
        ("possible_leak", "named after the illness"),
        ("x" * 40, "at most"),
        ("class", "word of Python"),
        ("vanishing_gradients", "is taken: src/sleuth/checks/training/vanishing_gradients.py"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(NameRefused, match=said):
        new_place(name, Stage.MODEL)


def test_a_check_that_does_not_exist_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(NameRefused, match="Did you mean vanishing-gradients"):
        known_place("vanishing-gradient")
    with pytest.raises(NameRefused, match="new-check purple-hats begins one"):
        known_place("purple_hats")


def test_the_nearest_illnesses_are_found_by_the_search_that_users_have() -> None:
    assert "vanishing-gradients" in [check.name for check in similar("fading-gradients")]
    assert similar("purple-hats") == []


@pytest.mark.parametrize("stage", Stage)
def test_what_is_written_runs_and_asks_for_everything(stage: Stage, tmp_path: Path) -> None:
    place = new_place(NAME, stage)
    (tmp_path / f"{place.function}.py").write_text(case_text(place))
    (case,) = discover(tmp_path)
    assert (case.name, case.source) == (NAME, "watch" if stage is Stage.TRAINING else "examine")
    assert type(case.sick(TorchKit())) is type(case.healthy(TorchKit()))
    space: dict[str, object] = {}
    exec(compile(check_text(place), "check.py", "exec"), space)
    made = space[place.function]
    assert (made.name, made.stage, made.code) == (NAME, stage, free_code(stage))
    assert made.code not in {check.code for check in all_checks()}
    for asked in (made.title, made.why, made.fix, made.decided_by, *made.symptoms):
        assert asked.startswith("TODO: ")


def test_a_check_may_begin_with_what_an_experiment_measured() -> None:
    space: dict[str, object] = {}
    exec(compile(check_text(new_place(NAME, Stage.BATCH), "Overfit"), "check.py", "exec"), space)
    assert space["Overfit"] is Overfit
    with pytest.raises(NameRefused, match="near to it: Overfit"):
        check_text(new_place(NAME, Stage.BATCH), "Overfits")


def test_no_check_and_no_case_still_has_a_prompt() -> None:
    files = [file for folder in ("src/sleuth/checks", "tests/cases", "tests/twins") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 2 * len(all_checks())
    assert prompts_left(files) == []


def outcome(kind: str, **told) -> Outcome:
    return Outcome(Run(kind, told.pop("case", NAME)), 1.0, **told)


def test_a_case_is_faulted_as_its_test_would() -> None:
    well = [outcome("sick", culprits=(NAME,), findings=(NAME,)), outcome("healthy")]
    assert list(own_faults(NAME, well)) == []
    faults = "\n".join(
        own_faults(
            NAME,
            [
                outcome("sick", not_examined="no data was seen"),
                outcome("sick", culprits=("dead-units", NAME), findings=("dead-units", NAME)),
                outcome("sick", culprits=("dead-units",), findings=("dead-units", NAME), symptoms=(NAME,)),
                outcome("healthy", culprits=("dead-units",), findings=("dead-units",)),
                outcome("healthy", not_examined="no step was seen"),
                outcome("healthy", error="ZeroDivisionError: oops"),
            ],
        )
    )
    for said in (
        "does not speak: no data was seen",
        "name it in `explains`",
        "explains purple-hats",
        "not healthy under every check",
    ):
        assert said in faults
    assert "did not look: no step was seen" in faults
    assert "oops" in faults
    assert "no kit can build" in next(own_faults(NAME, [outcome("sick", cannot_build="no such layer")]))


def test_healthy_trainings_that_are_accused_are_faults_and_sick_ones_are_told() -> None:
    spoken = {"findings": ("dead-units", NAME), "culprits": ("dead-units", NAME), "row": "-; purple-hats: -", "summary": "a hat"}
    runs = [outcome("zoo", case="mlp", **spoken), outcome("sick", case="dead-units", **spoken), outcome("zoo", case="cnn")]
    assert list(other_faults(NAME, runs)) == ["zoo mlp in torch is well and is accused: a hat"]
    told = "\n".join(sick_others(NAME, runs, {"dead-units": "-"}))
    assert "its golden row was '-' and is '-; purple-hats: -' now" in told
    assert "add it to that check's `explains`" in told
    assert len(list(beside("dead-units", runs))) == 1


def test_a_fix_that_only_torch_understands_is_known() -> None:
    by_name = {check.name: check for check in all_checks()}
    assert speaks_torch(by_name["missing-zero-grad"])
    assert not speaks_torch(by_name["loss-diverges"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_check_is_added_from_its_name_to_its_page(tmp_path: Path) -> None:
    """In a copy of the tree, in two kits: the prompts are told, then answered, then everything is written."""
    for part in PARTS:
        source = ROOT / part
        skipped = shutil.ignore_patterns("__pycache__", "results", "scripts*")
        shutil.copytree(source, tmp_path / part, ignore=skipped) if source.is_dir() else shutil.copy(source, tmp_path)
    place = Place("repeated-columns", Stage.DATA)
    check, case = (tmp_path / file.relative_to(ROOT) for file in (place.check, place.case))
    assert "D" in authoring(tmp_path, 0, "new-check", place.name, "--stage", "data")
    asked = authoring(tmp_path, 1, "check", place.name)
    assert f"src/sleuth/checks/data/{check.name}:1: the illness in one sentence" in asked
    check.write_text((Path(__file__).parent / "example_check.txt").read_text().replace("D000", free_code(Stage.DATA)))
    case.write_text((Path(__file__).parent / "example_case.txt").read_text())
    said = authoring(tmp_path, 0, "check", place.name, "--kits", "torch", "numpy", "--own-only")
    assert said.count("first culprit repeated-columns") == 2
    assert "repeated-columns: ready as far as it was tried" in said
    for written in ("tests/golden/cases/torch.txt", "tests/golden/cases/numpy.txt", f"docs/checks/{place.name}.md"):
        assert written in said
        assert place.name in (tmp_path / written).read_text()
    assert place.name not in (tmp_path / "tests/golden/cases/jax.txt").read_text()


def authoring(root: Path, code: int, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "SLEUTH_TEST_WORKERS": "1"}
    command = [sys.executable, "-m", "tests.authoring", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
