"""Keras on its jax backend, each in a process of its own: a backend is chosen when Keras is imported."""

import os
import subprocess
import sys

import pytest

QUICK = (
    "leaves_fit_as_it_is",
    "names_a_second_softmax",
    "keeps_the_rules",
    "looks_as_numpy_does",
    "follows_losses_that_somebody_has_written",
    "gives_experiments_the_time_that_compiling_takes",
    "stops_before_bad_weights_are_written",
    "hears_what_a_validation_asks",
    "judges_losses_of_probabilities_like_any_other",
)


def run(*names: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.adapters.keras_on_jax", *names],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
def test_keras_on_jax_is_watched_examined_and_left_alone() -> None:
    assert run(*QUICK).split() == list(QUICK)


@pytest.mark.long
def test_keras_on_jax_names_its_cases_first() -> None:
    assert run("names_its_cases_first").split() == ["names_its_cases_first"]


@pytest.mark.long
def test_keras_on_jax_keeps_every_rule() -> None:
    assert run("keeps_every_rule").split() == ["keeps_every_rule"]
