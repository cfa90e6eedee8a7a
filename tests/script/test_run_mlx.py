"""`sleuth run` on a plain training in MLX: the same to the last bit, and the cause with its line."""

from pathlib import Path

import pytest

from tests.script.ways import SCRIPTS, plain, report_of, watched

FILE = "mlx_digits.py"
LINES = (SCRIPTS / FILE).read_text().splitlines()


def line_of(text: str) -> str:
    number = next(i for i, line in enumerate(LINES, 1) if text in line)
    return f"{FILE}:{number}"


def test_a_healthy_training_is_the_same_to_the_last_bit_and_found_healthy(tmp_path: Path) -> None:
    added = report_of(watched(FILE, runs=tmp_path), plain(FILE))
    assert "✓ HEALTHY" in added
    assert "228 steps" in added


@pytest.mark.parametrize(
    ("word", "name", "line"),
    [
        ("high", "update-too-large", "self.last = nn.Linear"),
        ("idle", "disconnected-parameters", "self.idle = nn.Linear"),
        ("head", "frozen-parameters", "model.last.freeze()"),
    ],
)
def test_the_cause_is_named_first_with_its_line(word: str, name: str, line: str, tmp_path: Path) -> None:
    errors = watched(FILE, word, options=("--every", "1", "--steps", "60", "--budget", "0"), runs=tmp_path).errors.splitlines()
    first = next(i for i, text in enumerate(errors) if text.startswith("✗"))
    assert errors[first].startswith(f"✗ {name}")
    assert any(text.strip().startswith(line_of(line)) for text in errors[first : first + 8])


@pytest.mark.long
def test_of_a_compiled_step_the_loss_and_the_weights_are_heard(tmp_path: Path) -> None:
    added = report_of(watched(FILE, "compiled", runs=tmp_path), plain(FILE, "compiled"))
    assert "✓ HEALTHY" in added
    assert "228 steps" in added
    assert "update-too-large" in added.split("Not examined")[0]


TREE = "mlx_tree.py"


def test_a_network_of_plain_arrays_is_the_same_to_the_last_bit_and_found_healthy(tmp_path: Path) -> None:
    added = report_of(watched(TREE, runs=tmp_path), plain(TREE))
    assert "✓ HEALTHY" in added
    assert "160 steps" in added


@pytest.mark.parametrize(("word", "name"), [("hole", "input-not-finite"), ("high", "learning-rate-too-high")])
def test_of_plain_arrays_the_cause_is_named_first(word: str, name: str, tmp_path: Path) -> None:
    errors = watched(TREE, word, runs=tmp_path).errors.splitlines()
    assert next(text for text in errors if text.startswith("✗")).startswith(f"✗ {name} ")
