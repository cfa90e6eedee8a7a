"""`./dev bench wild`: its lists, and what it does with a script, here one of our own in the place of a public checkout."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.wild import data
from benchmarks.wild.judging import Report, changed_numbers, read_report
from benchmarks.wild.lists import Unfit, apply, read_faults, read_scripts
from benchmarks.wild.scratch import Workshop
from benchmarks.wild.trying import NotKept, Trial

ROOT = Path(__file__).parents[1]
# Names that checks will have which are being written.
COMING = {"targets-not-shifted", "targets-shifted-twice"}
SCRIPTS = read_scripts()
FAULTS = read_faults(SCRIPTS)

TRAINING = """\
import torch

torch.manual_seed(int(SEED))
inputs, model = torch.randn(256, 4), torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
targets = (inputs.sum(1) > 0).long()
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(300):
    rows = torch.randint(0, 256, (32,))
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
    loss.backward()
    optimiser.step()
    if step % 20 == 0:
        print(step, loss.item())
"""
LISTED = """\
[repositories]
checkout = { github = "somebody/something", commit = "0000000000000000000000000000000000000000" }
[[script]]
name = "ours"
repository = "checkout"
path = "part/train.py"
kind = "torch"
edits = [{ pattern = "int(SEED)", replacement = "0", why = "seeded" }]
"""
PLANTED = """\
[[fault]]
name = "gradients-pile-up"
script = "ours"
family = "order"
pattern = "    optimiser.zero_grad()\\n"
replacement = ""
illness = "missing-zero-grad"
line = "loss.backward()"
"""


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    path = tmp_path / "checkouts" / "checkout" / "part" / "train.py"
    path.parent.mkdir(parents=True)
    path.write_text(TRAINING)
    return tmp_path / "checkouts"


def test_the_lists_are_as_large_as_they_claim_to_be() -> None:
    assert len(SCRIPTS) >= 30
    assert len({script.path for script in SCRIPTS.values()}) >= 20
    assert len({script.repository for script in SCRIPTS.values()}) >= 10
    assert len(FAULTS) >= 36
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=lambda script: script.name)
def test_every_script_says_where_it_is_from_and_why_it_is_changed(script) -> None:
    assert len(script.repository.commit) == 40
    assert script.path.startswith(script.root)
    assert script.kind in ("torch", "numpy", "jax", "keras", "mlx")
    assert all(edit.why and edit.file.startswith(script.root) for edit in script.edits)
    assert all(order.split()[0] in data.MAKERS for order in script.data)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_has_names_of_checks_as_its_answer(fault) -> None:
    known = {page.stem for page in (ROOT / "docs" / "checks").glob("*.md")} | COMING
    assert {fault.illness, *fault.also} <= known
    assert fault.edit.pattern != fault.edit.replacement
    # Where the planted text has the line, the line can be found in it.
    assert (
        not fault.line or fault.line in fault.edit.replacement or fault.edit.replacement == "" or "\n" in fault.edit.replacement
    )


def test_a_pattern_that_is_not_there_once_is_refused(checkouts: Path) -> None:
    scripts = read_scripts(LISTED.replace("int(SEED)", "int(SEEDS)"))
    with pytest.raises(Unfit, match="0 times"):
        apply(scripts["ours"].edits, checkouts / "checkout")
    often = read_scripts(LISTED.replace("int(SEED)", "optimiser"))
    with pytest.raises(Unfit, match="3 times"):
        apply(often["ours"].edits, checkouts / "checkout")


def test_a_variant_takes_what_it_does_not_say_itself() -> None:
    more = '[[script]]\nname = "other"\nlike = "ours"\narguments = "--fast 1"\n'
    scripts = read_scripts(LISTED + more)
    assert scripts["other"].edits == scripts["ours"].edits
    assert scripts["other"].arguments == ("--fast", "1")
    assert not scripts["ours"].arguments


def test_a_healthy_script_is_compared_with_its_plain_runs_and_a_planted_fault_is_judged(checkouts: Path, tmp_path: Path) -> None:
    scripts = read_scripts(LISTED)
    script, (fault,) = scripts["ours"], read_faults(scripts, PLANTED)
    trial = Trial(Workshop(checkouts, sys.executable, tmp_path / "place"), tmp_path / "kept", "code")
    healthy = trial.healthy(script)
    assert (healthy.same, healthy.changed, healthy.compared) == ("yes", 0, 30)
    assert healthy.report.heard
    assert healthy.report.steps == 300
    assert len(healthy.report.examined) < healthy.report.asked

    planted = trial.planted(fault)
    assert (planted.verdict, planted.at_the_line, planted.code) == ("right", True, 0)
    assert planted.expected == TRAINING.splitlines().index("    loss.backward()")
    # The checkout itself stays as it is.
    assert (checkouts / "checkout" / "part" / "train.py").read_text() == TRAINING

    # What is kept tells the same without a run, but not for other code nor for another entry of the list.
    kept = replace(trial, only_kept=True)
    assert kept.healthy(script) == healthy
    assert kept.planted(fault) == planted
    for other, changed in ((replace(kept, sleuth="other"), script), (kept, replace(script, arguments=("--fast",)))):
        with pytest.raises(NotKept):
            other.healthy(changed)


def test_numbers_that_two_plain_runs_agree_in_must_be_the_same_and_times_need_not() -> None:
    first, second = "loss 0.5 took 3.1 ms, chance 1", "loss 0.5 took 3.2 ms, chance 2"
    assert changed_numbers(first, second, "loss 0.5 took 9 ms, chance 3") == 0
    assert changed_numbers(first, second, "loss 0.6 took 3.1 ms, chance 1") == 1
    assert changed_numbers(first, second, "loss 0.5 took 3 ms") == 1
    assert changed_numbers(first, "loss 0.5", first) is None


def test_a_run_without_a_report_was_not_heard() -> None:
    assert read_report(None) == Report(there=False)
    assert read_report({"expected_line": 3}) == Report(there=False)


def test_what_the_training_cannot_feed_does_not_count_against_the_coverage() -> None:
    refused = [{"name": "a", "reason": "only 46 steps were seen"}, {"name": "b", "reason": "the experiment gave no result"}]
    found = {"findings": [], "culprits": [], "steps": 46, "clear": ["c", "d", "e"], "not_examined": refused}
    report = read_report(found)
    assert (report.asked, report.ruled_out, report.coverage) == (5, 1, 0.75)


def test_a_repository_that_is_not_there_is_said(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "wild.py"), "--from", str(tmp_path), "--only", "keras"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert ran.returncode == 1
    names = [name for name in SCRIPTS if "keras" in name]
    assert all(f"MISSING  {name}: no folder {SCRIPTS[name].repository.folder}" in ran.stdout for name in names)
    faults = [fault for fault in FAULTS if "keras" in fault.name]
    assert f"left out: {len(names) + len(faults)} of {len(names) + len(faults)}" in ran.stdout
