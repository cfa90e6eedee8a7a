"""Curves and statistics of a run, as arrays and as tables of pandas."""

import builtins
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import sleuth
import sleuth.session.watch
from sleuth.core.observation import Evaluation, Frame, Role, Split, Step
from sleuth.core.statistics import COLUMNS
from sleuth.store.arrays import StoredRun
from sleuth.store.writing import Writer
from tests.watch import scenarios

STEPS = 20


@pytest.fixture
def run(tmp_path: Path) -> sleuth.Report:
    """With the weights of each step in `weights` beside it."""
    training = scenarios.gan()
    with sleuth.watch(training.model, training.optimisers, directory=tmp_path, quiet=True, every=1) as w:
        for step, _ in enumerate(islice(training.loop(), STEPS)):
            if step % 10 == 9:
                w.log(val_loss=step / 10, accuracy=0.5, loss=float("nan"))
    (folder,) = tmp_path.iterdir()
    return sleuth.load(folder)


def test_curves_are_arrays_of_steps_and_values(run: sleuth.Report) -> None:
    steps, losses = run.curves()["loss"]
    assert steps.tolist() == list(range(0, 2 * STEPS, 2))
    assert losses.dtype == np.float64
    assert np.isfinite(losses).all()
    assert run.curves()["lr"].values.tolist() == [1e-3] * STEPS


def test_a_second_optimiser_has_curves_of_its_own(run: sleuth.Report) -> None:
    curves = run.curves()
    assert curves["optimiser1.loss"].steps.tolist() == list(range(1, 2 * STEPS, 2))
    assert not np.allclose(curves["optimiser1.loss"].values, curves["loss"].values)


def test_what_was_logged_stands_beside_what_was_heard(run: sleuth.Report) -> None:
    curves = run.curves()
    assert curves["val_loss"].values.tolist() == [0.9, 1.9]
    assert curves["accuracy"].values.tolist() == [0.5, 0.5]
    assert np.isnan(curves["logged_loss"].values).all()


def test_what_the_loop_computed_gives_way_to_what_the_user_said(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    heard = [Evaluation(1, Split.VALIDATION, {"loss": 3.0, "accuracy": 0.1})]
    writer.write([*heard, Evaluation(2, Split.VALIDATION, {"loss": 4.0}, logged=True)])
    writer.close()
    curves = StoredRun(tmp_path / "run.sqlite").curves()
    assert {name: curve.values.tolist() for name, curve in curves.items()} == {
        "seen_val_loss": [3.0],
        "val_loss": [4.0],
        "val_accuracy": [0.1],
    }


def test_statistics_are_one_array(run: sleuth.Report) -> None:
    table = run.statistics("weight")
    assert table.columns == COLUMNS
    assert table.values.shape == (2 * STEPS, len(table.paths), len(COLUMNS))
    assert set(table.paths) == {f"make.{i}.{p}" for i in (0, 2) for p in ("weight", "bias")} | {"judge.weight", "judge.bias"}
    makers = table.column("count")[1::2, table.paths.index("make.0.weight")]
    assert (makers == 16 * 4).all()
    # Each optimiser's steps show its own tensors.
    assert np.isnan(table.column("count")[::2, table.paths.index("make.0.weight")]).all()


def test_derived_statistics_say_what_torch_says(tmp_path: Path) -> None:
    torch.manual_seed(0)
    training = scenarios.adam()
    weights = []
    with sleuth.watch(training.model, training.optimisers, directory=tmp_path, quiet=True, every=1):
        weights.append(training.model[0].weight.detach().clone())
        for _ in islice(training.loop(), 5):
            weights.append(training.model[0].weight.detach().clone())
    (folder,) = tmp_path.iterdir()
    table = sleuth.load(folder).statistics(Role.WEIGHT)
    place = table.paths.index("0.weight")
    for name, wanted in {
        "norm": torch.norm,
        "rms": lambda w: w.square().mean().sqrt(),
        "std": lambda w: w.std(correction=0),
    }.items():
        expected = [wanted(w.double()).item() for w in weights[:-1]]
        assert table.column(name)[:, place] == pytest.approx(expected, rel=1e-6)


def test_a_statistic_or_role_that_does_not_exist_is_refused_with_the_choices(run: sleuth.Report) -> None:
    with pytest.raises(sleuth.UnusableInput, match=r"'median'.*mean.*rms"):
        run.statistics("weight").column("median")
    with pytest.raises(sleuth.UnusableInput, match=r"'weights'.*weight"):
        run.statistics("weights")


def test_a_role_that_was_not_seen_is_an_empty_table(run: sleuth.Report) -> None:
    assert run.statistics(Role.INPUT).values.shape == (0, 0, len(COLUMNS))


def test_a_tensor_that_comes_later_is_nan_before(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    row = np.arange(9.0)[None]
    writer.write([Frame(1, Role.WEIGHT, ("a",), row), Frame(2, Role.WEIGHT, ("b", "a"), np.concatenate([row + 1, row]))])
    writer.close()
    table = StoredRun(tmp_path / "run.sqlite").statistics(Role.WEIGHT)
    assert table.paths == ("a", "b")
    assert table.column("mean").tolist() == pytest.approx(np.array([[1, np.nan], [1, 2]]), nan_ok=True)


def test_a_report_of_no_run_says_where_curves_are(run: sleuth.Report, tmp_path: Path) -> None:
    saved = sleuth.load(run.save(tmp_path / "report.json"))
    with pytest.raises(sleuth.UnusableInput, match="not of a recorded run"):
        saved.curves()


def test_a_loss_that_was_not_finite_is_nan_in_its_curve(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run.sqlite")
    writer.write([Step(1, 0.5), Step(2, None)])
    writer.close()
    assert StoredRun(tmp_path / "run.sqlite").curves()["loss"].values == pytest.approx([0.5, np.nan], nan_ok=True)


def test_without_pandas_the_way_out_is_named(run: sleuth.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(sleuth.UnusableInput, match="pip install pandas"):
        run.to_dataframe()


def test_with_pandas_curves_and_statistics_are_data_frames(run: sleuth.Report) -> None:
    pytest.importorskip("pandas")
    curves = run.to_dataframe()
    assert curves.index.name == "step"
    assert curves["loss"].dropna().tolist() == run.curves()["loss"].values.tolist()
    weights = run.statistics("weight").to_dataframe()
    assert weights.index.names == ["step", "tensor"]
    assert len(weights) == STEPS * 6
    assert weights.loc[(1, "make.0.weight"), "count"] == 64
