"""The flight recorder: a step that went wrong is kept whole, its sample is named, and it can be done again elsewhere."""

import gc
import json
import random
import subprocess
import sys
import weakref
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from sleuth.core.contract import scene as core_scene
from sleuth.core.observation import Origin, Suspect
from tests.watch import poisoned
from tests.watch.poisoned import SICK, Net
from tests.watch.scenarios import SCENARIOS
from tests.watch.scene_loops import QUIET, seen, train


@pytest.mark.parametrize(
    "value, logarithm, reason", [(-2.0, True, "log makes of it NaN"), (float("nan"), False, "its input holds NaN")]
)
def test_one_poisoned_sample_in_fifty_thousand_is_named_and_its_step_replays_in_a_fresh_process(
    tmp_path: Path, value: float, logarithm: bool, reason: str
) -> None:
    w = train(Net(logarithm), poisoned.loader(value), directory=tmp_path)
    report = w.report()
    finding = report.culprits[0].finding
    assert finding.name == "loss-not-finite"
    assert f"step {poisoned.STRIKES_AT}" in finding.summary
    assert "sample 31,337 of the data set (position 3 of its batch)" in finding.summary
    assert reason in finding.summary
    assert report.scenes == (1,)
    (run,) = tmp_path.iterdir()
    factory = f"{poisoned.__file__}:{'build' if logarithm else 'build_without_logarithm'}"
    told = subprocess.run(
        [sys.executable, "-m", "sleuth", "replay", str(run), factory, "--scene", "1", "--json", "-"],
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    again = json.loads(told.stdout)
    assert again["reproduced"]
    assert again["verdict"] == "same"
    assert again["samples"][3] == SICK
    assert again["loss"] == "nan"
    if logarithm:
        assert again["origin"]["operation"] == "log"
        assert again["origin"]["location"]["file"].endswith("poisoned.py")
    loaded = sleuth.load(run)
    assert [f.summary for f in loaded.findings if f.name in QUIET["select"]] == [f.summary for f in report.findings]
    assert loaded.scene(1).step == poisoned.STRIKES_AT


def test_a_loss_written_by_hand_is_told_by_its_operation_line_and_sample() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    x, y = torch.rand(64, 4), torch.rand(64, 1) + 0.1
    y[37] = -5000.0
    with sleuth.watch(model, optimiser, directory=None, **QUIET) as w:
        for a, b in DataLoader(TensorDataset(x, y), 16):
            optimiser.zero_grad()
            output = model(a)
            loss = torch.log(output.exp() + b).mean()
            loss.backward()
            optimiser.step()
    (suspect,), (origin,) = seen(w, Suspect), seen(w, Origin)
    assert (suspect.position, suspect.index) == (5, 37)
    assert origin.operation == "log"
    assert origin.location is not None
    assert "torch.log(output.exp() + b)" in origin.location.text
    assert origin.inputs[0][0] < 0


class Rooted(nn.Module):
    """The derivative of a square root has no value at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = torch.sqrt((x * self.first.weight.sum()).pow(2).sum(1, keepdim=True))
        return self.last(torch.relu(self.first(x))) + length


def test_a_gradient_that_is_not_finite_is_told_by_its_operation_and_sample(tmp_path: Path) -> None:
    x, y = torch.rand(64, 4), torch.rand(64, 1)
    x[37] = 0.0
    w = train(Rooted(), DataLoader(TensorDataset(x, y), 16), directory=tmp_path)
    finding = w.report().culprits[0].finding
    assert finding.name == "gradient-not-finite"
    assert "sample 37 of the data set" in finding.summary
    assert "the backward of sqrt" in finding.summary
    assert finding.location is not None
    assert "torch.sqrt" in finding.location.text
    again = sleuth.replay(w.report().scene(1), Rooted())
    assert again.reproduced
    assert again.origin is not None
    assert again.origin.direction == "backward"
    assert "first.weight" in again.gradients


def test_a_scene_holds_everything_and_no_pickle(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = Net()
    before = {}
    loader = poisoned.loader(-2.0, strikes_at=20)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, directory=tmp_path, **QUIET) as w:
        for i, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            output = model(x)
            loss = functional.mse_loss(output, y)
            loss.backward()
            if i == 20:
                before = {n: p.detach().clone() for n, p in model.named_parameters()}
                moments = optimiser.state[model.first.weight]["exp_avg"].clone()
            optimiser.step()
    scene = w.report().scene(1)
    assert (scene.name, scene.step) == ("loss-not-finite", 20)
    assert scene.samples is not None
    assert scene.samples[3] == SICK
    for name, values in before.items():
        assert torch.equal(torch.from_numpy(scene.arrays[f"parameters.{name}"].values.copy()), values)
    assert (scene.arrays["optimiser.0.first.weight.exp_avg"].values == moments.numpy()).all()
    assert [row["step"] for row in scene.facts["steps"]] == list(range(4, 20))
    assert "loss.backward()" in scene.facts["lines"]["backward"]["text"]
    assert scene.facts["losses"][0]["name"] == "mse_loss"
    assert scene.facts["left_out"] == []
    assert scene.facts["reproduced"] is True, "dropout was drawn anew"
    files = {p.name for p in tmp_path.rglob("scenes/**/*") if p.is_file()}
    assert files == {"scene.json", "tensors.safetensors"}


class WithItsLoss(Net):
    """As models of transformers do, it returns its loss among its outputs."""

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        output = super().forward(x)
        return {"loss": functional.mse_loss(output, labels), "logits": output}


def test_a_loss_among_the_models_outputs_is_done_again(tmp_path: Path) -> None:
    model = WithItsLoss()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, directory=tmp_path, **QUIET) as w:
        for x, y in poisoned.loader(-2.0, strikes_at=5):
            optimiser.zero_grad()
            model(x, labels=y)["loss"].backward()
            optimiser.step()
    (suspect,) = seen(w, Suspect)
    assert suspect.index == SICK
    again = sleuth.replay(w.report().scene(1), WithItsLoss())
    assert again.verdict == "same"
    assert any(text.startswith("the loss: same") for text in again.compared)


def test_a_strangers_scene_calls_nothing_but_losses(tmp_path: Path) -> None:
    w = train(Net(), poisoned.loader(-2.0, strikes_at=5), directory=tmp_path)
    scene = w.report().scene(1)
    scene.facts["losses"][0]["name"] = "handle_torch_function"
    with pytest.raises(sleuth.UnusableInput, match="has no loss"):
        sleuth.replay(scene, Net())


def test_other_weights_on_another_machine_are_within_rounding_or_not(tmp_path: Path) -> None:
    x, y = torch.rand(64, 4) + 0.5, torch.rand(64, 1)
    x[20] = 0.0
    w = train(Rooted(), DataLoader(TensorDataset(x, y), 16), directory=tmp_path)
    scene = w.report().scene(1)

    def nudged(factor: float):
        class Nudged(Rooted):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) * factor

        return sleuth.replay(scene, Nudged()).verdict

    assert [nudged(f) for f in (1.0, 1 + 1e-6, 1.01)] == ["same", "close", "different"]


def test_the_last_step_of_a_run_that_dies_is_kept(tmp_path: Path) -> None:
    """Whoever checks the loss alone and raises has no next step."""
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with pytest.raises(ValueError, match="nan"), sleuth.watch(model, optimiser, directory=tmp_path, **QUIET) as w:
        for x, y in poisoned.loader(-2.0, strikes_at=10):
            optimiser.zero_grad()
            loss = functional.mse_loss(model(x), y)
            loss.backward()
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss}")
            optimiser.step()
    assert w.report().scenes == (1,)


def test_nothing_of_the_batch_is_kept_alive_after_the_step() -> None:
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    with sleuth.watch(model, optimiser, directory=None, **QUIET):
        x, y = torch.rand(8, 4) + 0.5, torch.rand(8, 1)
        gone = [weakref.ref(x), weakref.ref(y)]
        for _ in range(5):
            optimiser.zero_grad()
            functional.mse_loss(model(x), y).backward()
            optimiser.step()
        del x, y
        gc.collect()
        assert [r() for r in gone] == [None, None]


# Of torch's random state 5,056 bytes, of the batch 192, of the weights 196, of Adam's state 408.
@pytest.mark.parametrize("limit, left_out", [(0, None), (100, 3), (5_300, 2), (5_500, 1), (20_000, 0)])
def test_scenes_keep_within_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, left_out: int | None
) -> None:
    monkeypatch.setattr("sleuth.session.on_error.MOST_BYTES", limit)
    w = train(Net(), poisoned.loader(-2.0, strikes_at=5), directory=tmp_path, optimiser=torch.optim.Adam)
    report = w.report()
    if left_out is None:
        assert report.scenes == ()
        return
    told = report.scene(1).facts["left_out"]
    what = ["the state of the optimiser", "the weights", "the batch"]
    assert sorted(line.split(":")[0] for line in told) == sorted(what[:left_out])


def test_scenes_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.session.on_error.MOST_SCENES", 1)
    x, y = torch.rand(64, 4), torch.rand(64, 1)
    x[5], x[40] = 0.0, float("nan")
    w = train(Rooted(), DataLoader(TensorDataset(x, y), 16), directory=tmp_path)
    assert w.report().scenes == (1,)
    assert core_scene.MOST_SCENES == 8


def test_a_directory_that_cannot_be_written_to_leaves_the_training_alone(tmp_path: Path) -> None:
    """The folder of the scenes is a file: that stops also whoever may write anywhere."""
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 1e-3)
    steps = 0
    with sleuth.watch(model, optimiser, directory=tmp_path, **QUIET) as w:
        (run,) = tmp_path.iterdir()
        (run / "scenes").write_text("in the way")
        for x, y in poisoned.loader(-2.0, strikes_at=5):
            optimiser.zero_grad()
            functional.mse_loss(model(x), y).backward()
            optimiser.step()
            steps += 1
    assert steps == 45
    report = w.report()
    assert report.culprits[0].finding.name == "loss-not-finite"
    assert any("could not be kept" in note for note in report.notes)


class Restless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (0.9 + 0.2 * random.random() + 0.1 * np.random.rand())


def test_replaying_leaves_weights_buffers_gradients_and_random_state_alone() -> None:
    """The bits after a poisoned run are those of the same run without a watch."""

    def run(watched: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), Restless(), nn.Linear(8, 1))
        optimiser = torch.optim.Adam(model.parameters(), 1e-3)

        def loop() -> None:
            for i in range(30):
                x = torch.randn(16, 4)
                if i == 20:
                    x[3] = float("inf")
                optimiser.zero_grad()
                functional.mse_loss(model(x), torch.zeros(16, 1)).backward()
                optimiser.step()

        if watched:
            with sleuth.watch(model, optimiser, directory=None, **QUIET) as w:
                loop()
            assert seen(w, Suspect)
            assert not w.watching.remarks
        else:
            loop()
        drawn = torch.tensor([random.random(), np.random.rand()])
        return [*model.state_dict().values(), torch.get_rng_state(), drawn, *(p.grad for p in model.parameters())]

    for one, other in zip(run(False), run(True), strict=True):
        assert torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
        assert torch.equal(torch.isnan(one), torch.isnan(other))


@pytest.mark.parametrize("options", [{"on_error": "stop"}, {"assert_finite": True}], ids=["stop", "assert_finite"])
@pytest.mark.parametrize(
    "name",
    ["adam", "lbfgs_closure", "gan", "accumulation", "autocast_with_scaler", "compiled", "tied_shared_in_place_dict"],
)
def test_tripwires_leave_the_bits_of_a_training_alone(name: str, options: dict) -> None:
    def run(watched: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        training = SCENARIOS[name]()
        loop = training.loop()
        if watched:
            with sleuth.watch(training.model, training.optimisers, directory=None, **QUIET, **options) as w:
                for _ in islice(loop, 60):
                    pass
            assert not w.notes
        else:
            for _ in islice(loop, 60):
                pass
        state = training.state()
        training.closing()
        return state

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))
