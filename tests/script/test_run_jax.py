"""`sleuth run` on scripts of JAX as they are: the same to the last bit, and the cause with its line."""

import json
from pathlib import Path

import pytest

from tests.script.ways import SCRIPTS, plain, report_of, watched

LINES = [line.strip() for line in (SCRIPTS / "jax_digits.py").read_text().splitlines()]
LOG = next(number for number, line in enumerate(LINES, start=1) if "jnp.log(" in line)


@pytest.mark.long
def test_a_healthy_script_of_jax_is_the_same_to_the_last_bit_and_found_healthy(tmp_path: Path) -> None:
    added = report_of(watched("jax_digits.py", runs=tmp_path), plain("jax_digits.py"))
    assert "✓ HEALTHY" in added
    assert "jax_digits.py · 60 steps in" in added
    assert "weights-do-not-change" in added
    assert "SGD, learning rate 0.1" in added  # though Equinox, which applies the updates, is imported before JAX


@pytest.mark.long
def test_a_loss_of_jax_that_breaks_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended = watched("jax_digits.py", "--log", options=("--json", str(file), "--quiet"), runs=tmp_path)
    assert (ended.code, ended.errors) == (0, "")
    (culprit,) = json.loads(file.read_text())["culprits"]
    assert (culprit["name"], culprit["location"]["line"]) == ("loss-not-finite", LOG)
