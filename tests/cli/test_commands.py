"""The commands as people type them: what they print and how they end."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sleuth
from sleuth.checks import all_checks
from sleuth.cli import main
from tests.views import reports

TRAININGS = Path(__file__).with_name("trainings.py")


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A user's folder with the trainings in it, as the current one."""
    shutil.copy(TRAININGS, tmp_path / "train.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("train", "examined_train"):
        sys.modules.pop(name, None)


def test_without_a_word_the_help_teaches() -> None:
    result = run()
    assert result.exit_code == 0
    assert "sleuth demo" in result.output
    assert "sleuth examine train.py:training" in result.output


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_within_the_screen(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.output.splitlines()), result.output


def test_checks_lists_them_all() -> None:
    result = run("checks")
    assert result.exit_code == 0
    assert all(c.name in result.output for c in all_checks())


def test_a_sick_training_is_named_and_exits_with_0(folder: Path) -> None:
    result = run("examine", "train.py:sick", "--select", "vanishing-gradients")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("sleuth · train.py:sick · examined in")
    assert "✗ vanishing-gradients  T407" in result.stdout


def test_the_name_that_a_subject_brings_is_kept(folder: Path) -> None:
    result = run("examine", "train.py:subject", "--select", "vanishing-gradients")
    assert result.stdout.startswith("sleuth · my digits ·")


@pytest.mark.parametrize(("level", "code"), [("warning", 1), ("error", 0)])
def test_fail_on_turns_findings_into_exit_1(folder: Path, level: str, code: int) -> None:
    assert run("examine", "train.py:sick", "--select", "T407", "--fail-on", level).exit_code == code
    assert run("examine", "train.py:healthy", "--select", "T407", "--fail-on", level).exit_code == 0


def test_an_ignored_finding_is_shown_with_its_reason_and_fails_nothing(folder: Path) -> None:
    words = ("examine", "train.py:sick", "--select", "T407", "--fail-on", "warning", "--ignore", "T407=it is a museum piece")
    result = run(*words)
    assert result.exit_code == 0
    assert "vanishing-gradients: it is a museum piece" in result.stdout


def test_reports_are_written_as_asked_and_read_back(folder: Path) -> None:
    result = run("examine", "train.py:sick", "--select", "T407", "--json", "r.json", "--html", "r.html", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")
    assert '<section id="verdict">' in Path("r.html").read_text()
    shown = run("report", "r.json")
    assert shown.exit_code == 0
    assert "✗ vanishing-gradients" in shown.stdout
    assert run("report", "r.json", "--fail-on", "warning").exit_code == 1
    assert run("report", "r.json", "--quiet", "--json", "again.json", "--html", "again.html").exit_code == 0
    assert Path("again.json").read_text() == Path("r.json").read_text()
    # JSON does not hold the recording: curves and layers are only in the first page.
    verdicts = [
        Path(name).read_text().split('<section id="verdict">')[1].split("<section")[0] for name in ("r.html", "again.html")
    ]
    assert verdicts[0] == verdicts[1]


def test_json_on_standard_output_is_json_alone(folder: Path) -> None:
    result = run("examine", "train.py:talkative", "--select", "T407", "--json", "-")
    assert json.loads(result.stdout)["status"] == "healthy"
    assert "loading" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.py:training"], "there is no file nowhere.py"),
        (["trian.py:healthy"], "Did you mean train.py?"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["train.py"], "such as train.py:healthy"),
        ([".:healthy"], "is a folder"),
        (["notes.txt:healthy"], "not a Python file"),
        (["broken.py:healthy"], "broken.py:1   def broken(:"),
        (["needy.py:healthy"], "ModuleNotFoundError: No module named 'no_such_package'\n  needy.py:2   import no_such_package"),
        (["script.py:healthy"], "if __name__ == '__main__'"),
        (["train.py:trainig"], "has no function 'trainig'. It has: "),
        (["train.py:not_a_function"], "is an int, not a function"),
        (["train.py:raises"], "raised FileNotFoundError: [Errno 2] No such file or directory: 'no-such-data.csv'\n  train.py:"),
        (["train.py:raises"], 'return open("no-such-data.csv")'),
        (["train.py:ends"], "raised SystemExit"),
        (["train.py:wants"], "wants arguments (path)"),
        (["train.py:nothing"], "returned None (is a `return` missing?)"),
        (["train.py:pair"], "returned a tuple; expected a dict"),
        (["train.py:misspelt"], "Did you mean 'optimizer'?"),
        (["train.py:without_data"], "has no 'train'"),
        (["train.py:foreign_model"], "a str is not a model"),
        (["train.py:empty_loader"], "yielded no batch"),
        (["train.py:dropped_loader"], "yielded no batch"),
        (["train.py:one_shot"], "can be read only once"),
        (["train.py:ragged_arrays"], "differ in their number of samples: (8, 64), (7,)"),
        (["train.py:odd_budget"], "expected a number of seconds"),
        (["train.py:healthy", "--budget-seconds", "0"], "leaves no time"),
        (["train.py:healthy", "--select", "vanishing"], "there is no check 'vanishing'"),
        (["train.py:healthy", "--ignore", "T407"], "lacks a reason"),
        (["train.py:healthy", "--ignore", "nonsense=so"], "there is no check 'nonsense'"),
        (["train.py:healthy", "--json", "no/where.json"], "there is no folder"),
        (["train.py:healthy", "--json", "."], "is a folder"),
        (["train.py:healthy", "--fail-on", "hint"], "hint"),
        ([], "Missing argument"),
    ],
)
def test_unusable_input_gets_one_clear_message_and_exit_2(folder: Path, words: list[str], message: str) -> None:
    (folder / "notes.txt").write_text("no code")
    (folder / "broken.py").write_text("def broken(:\n")
    (folder / "needy.py").write_text("import os\nimport no_such_package\n")
    (folder / "script.py").write_text("import sys\nsys.exit(0)\n")
    result = run("examine", *words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("ragged", "sick", "(7,)"),
        ("ragged_rows", "sick", "60 features"),
        ("loss_per_sample", "sick", "loss.mean()"),
        ("elsewhere", ("sick", "unknown"), "meta"),
    ],
)
def test_a_training_that_does_not_fit_is_examined_as_far_as_it_goes(folder: Path, name: str, status: str, words: str) -> None:
    result = run("examine", f"train.py:{name}", "--budget-seconds", "20", "--json", "r.json")
    assert result.exit_code == 0, result.output
    assert words in result.stdout
    table = json.loads(Path("r.json").read_text())
    assert table["status"] in status
    assert not [f for f in table["findings"] if f["name"] == "sleuth-failed"]


def test_modules_beside_the_file_can_be_imported(folder: Path) -> None:
    (folder / "beside_it.py").write_text("from train import healthy\n")
    (folder / "outer.py").write_text("import beside_it\ntraining = beside_it.healthy\n")
    assert run("examine", "outer.py:training", "--select", "T407", "--quiet").exit_code == 0


def test_a_file_named_like_a_loaded_module_does_not_replace_it(folder: Path) -> None:
    (folder / "json.py").write_text("from train import healthy\n")
    assert run("examine", "json.py:healthy", "--select", "T407", "--quiet").exit_code == 0
    assert sys.modules["json"] is json


def test_a_failure_of_ours_is_said_to_be_ours(folder: Path, monkeypatch) -> None:
    def fails(*args, **options):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("sleuth.api.build_report", fails)
    result = run("examine", "train.py:healthy", "--select", "T407")
    assert result.exit_code == 3
    assert "sleuth itself failed: ZeroDivisionError: a slip" in result.stderr
    assert "not of your training" in result.stderr
    assert "SLEUTH_TRACEBACK=1" in result.stderr


def test_ctrl_c_gives_the_report_so_far(folder: Path, monkeypatch) -> None:
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sleuth.probes.lab.examination.run_probe", interrupted)
    result = run("examine", "train.py:healthy")
    assert result.exit_code == 0
    assert "this is the report so far" in result.stdout
    assert "Status: UNKNOWN" in result.stdout


def test_ctrl_c_before_anything_was_examined_exits_as_shells_expect(folder: Path) -> None:
    (folder / "slow.py").write_text("def training():\n    raise KeyboardInterrupt\n")
    assert run("examine", "slow.py:training").exit_code == 130


def test_a_saved_report_that_is_none_exits_2(folder: Path) -> None:
    result = run("report", "train.py")
    assert result.exit_code == 2
    assert "is not JSON" in result.stderr


def test_a_report_saved_in_python_is_shown_by_the_command(folder: Path) -> None:
    reports.sick().save("r.json")
    assert run("report", "r.json").stdout == reports.sick().to_text() + "\n"
    assert sleuth.load("r.json").status == "sick"


def python_m_sleuth(*words: str, cwd: Path, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "sleuth", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "words", [["--help"], ["checks"], ["explain", "T407"], ["explain", "loss is nan"], ["examine", "--help"]]
)
def test_what_examines_nothing_imports_no_framework(words: list[str], tmp_path: Path) -> None:
    code = f"""
import sys
from sleuth.cli import main
main({words!r}, standalone_mode=False)
print(sorted(set(sys.modules) & {{"torch", "jax", "sklearn", "keras"}}))
"""
    assert python_m_sleuth(cwd=tmp_path, code=code).stdout.splitlines()[-1] == "[]"


def test_a_real_process_examines_a_sick_training(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = python_m_sleuth("examine", "train.py:training", "--select", "T407", "--fail-on", "warning", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "✗ vanishing-gradients  T407 · warning" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_a_real_process_says_what_is_wrong_with_the_input(tmp_path: Path) -> None:
    done = python_m_sleuth("examine", "nowhere.py:training", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sleuth: there is no file nowhere.py.\n"


TRAINING = """
import torch
from torch import nn

def training():
    torch.manual_seed(0)
    x, y = torch.rand(64, 20), torch.randint(0, 3, (64,))
    layers = [layer for _ in range(9) for layer in (nn.Linear(20, 20), nn.Sigmoid())]
    model = nn.Sequential(*layers, nn.Linear(20, 3))
    return {"model": model, "train": (x, y), "loss": nn.CrossEntropyLoss(),
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
"""
