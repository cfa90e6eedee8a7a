"""Which model is watched, and from when on, in scripts that say nothing about it."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from sleuth.adapters.listening import discovery as listening_discovery
from sleuth.adapters.torch.watching import created_at, discovery, patches
from sleuth.core.observation import Architecture, Step
from sleuth.core.report import Report
from sleuth.session.script import Options, Session
from sleuth.store.reading import Run, files_of
from tests.material import digits

X, Y = (torch.as_tensor(part) for part in digits())
X = X.float().reshape(len(X), -1)

Script = Callable[[], None]


def heard(script: Script, folder: Path, *, found_already: bool = False, **options: object) -> Session:
    session = Session("train.py", Options(directory=folder, **{"budget": 0, **options}))
    session.attend("torch", found_already=found_already)
    error = None
    try:
        script()
    except (Exception, SystemExit) as raised:
        error = raised
    session.end(error)
    assert not patches.LISTENERS
    assert created_at.made(nn.Linear(1, 1)) is None  # also where a compiler has wrapped our patch meanwhile
    assert not any(told.report.notes and "ended early" in told.report.notes[0] for told in session.told)
    return session


def stored(session: Session, kind: type, number: int = 0) -> list:
    with Run(files_of(session.told[number].folder)[0]) as run:
        return [o for o in run.observations() if isinstance(o, kind)]


def parameters(session: Session, number: int = 0) -> list[str]:
    return [p.path for p in stored(session, Architecture, number)[0].parameters]


def mlp(inputs: int = X.shape[1], outputs: int = 10) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def batches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(count):
        rows = torch.randint(0, len(Y), (32,))
        yield X[rows], Y[rows]


def train(model: nn.Module, optimiser: torch.optim.Optimizer, steps: int = 12) -> None:
    for x, y in batches(steps):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()


def plain_script() -> None:
    model = mlp()
    train(model, torch.optim.SGD(model.parameters(), 0.1))


def test_the_first_step_is_heard_in_full(tmp_path: Path) -> None:
    def script() -> None:  # nothing comes before the forward
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in batches(12):
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            optimiser.zero_grad()

    session = heard(script, tmp_path)
    steps = stored(session, Step)
    assert len(steps) == 12
    assert steps[0].calls == ("forward", "backward", "step")
    assert steps[0].loss is not None
    assert not session.main().report.findings


def test_the_script_is_not_told_apart_from_the_untouched_one(tmp_path: Path) -> None:
    def script() -> list[torch.Tensor]:
        torch.manual_seed(3)
        model = nn.Sequential(mlp(), nn.Dropout(0.1))
        train(model, torch.optim.Adam(model.parameters(), 1e-2))
        return [*model.state_dict().values(), torch.rand(3)]

    found: list[list[torch.Tensor]] = []
    heard(lambda: found.append(script()), tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found[0], script(), strict=True))


def test_two_models_of_one_game_are_watched_together_by_the_users_names(tmp_path: Path) -> None:
    def script() -> None:
        maker, judge = mlp(8, X.shape[1]), mlp(X.shape[1], 1)
        for_judge = torch.optim.Adam(judge.parameters(), 1e-3)
        for_maker = torch.optim.Adam(maker.parameters(), 1e-3)
        ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
        for x, _ in batches(12):
            made = maker(torch.randn(32, 8))
            for_judge.zero_grad()
            real = functional.binary_cross_entropy_with_logits(judge(x), ones)
            (real + functional.binary_cross_entropy_with_logits(judge(made.detach()), zeros)).backward()
            for_judge.step()
            for_maker.zero_grad()
            functional.binary_cross_entropy_with_logits(judge(made), ones).backward()
            for_maker.step()

    session = heard(script, tmp_path)
    assert len(session.told) == 1
    assert {path.split(".")[0] for path in parameters(session)} == {"maker", "judge"}
    assert {step.optimiser for step in stored(session, Step)} == {0, 1}
    assert all("forward" in step.calls for step in stored(session, Step))
    assert session.main().report.status == "healthy", session.main().report.unanswered


def test_copies_that_nobody_steps_are_left_out(tmp_path: Path) -> None:
    def script() -> None:
        policy = mlp()
        target, averaged = copy.deepcopy(policy), torch.optim.swa_utils.AveragedModel(policy)
        temperature = torch.zeros(1, requires_grad=True)
        optimiser = torch.optim.Adam([*policy.parameters(), temperature], 1e-2)
        for x, y in batches(12):
            with torch.no_grad():
                wanted = target(x)
            loss = functional.cross_entropy(policy(x) * temperature.exp(), y) + 0.01 * functional.mse_loss(policy(x), wanted)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            averaged.update_parameters(policy)

    names = parameters(heard(script, tmp_path))
    assert names == ["temperature", *(f"policy.{name}" for name, _ in mlp().named_parameters())]


def test_a_container_that_cannot_be_called_gives_way_to_the_models_in_it(tmp_path: Path) -> None:
    class Experiment(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.teacher, self.student = mlp(), mlp()

    def script() -> None:
        experiment = Experiment()
        train(experiment.student, torch.optim.SGD(experiment.student.parameters(), 0.1))

    assert parameters(heard(script, tmp_path)) == [name for name, _ in mlp().named_parameters()]


def test_what_the_optimiser_forgot_belongs_to_the_model(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk, self.head = nn.Linear(X.shape[1], 16), nn.Linear(16, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.trunk(x)))

    def script() -> None:
        model = Net()
        train(model, torch.optim.SGD(model.head.parameters(), 0.1))

    session = heard(script, tmp_path)
    assert session.main().report.culprits[0].finding.name == "parameters-not-optimised"


def test_one_training_after_the_other_gives_one_report_each(tmp_path: Path) -> None:
    def script() -> None:
        for rate in (0.1, 0.05):
            model = mlp()
            train(model, torch.optim.SGD(model.parameters(), rate))
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        for x, y in batches(24):
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()

    session = heard(script, tmp_path)
    assert [told.report.steps for told in session.told] == [12, 12, 24]
    assert _culprits(session.main().report) == ["missing-zero-grad"], "the worst is spoken of first"


def test_an_optimiser_made_anew_stays_in_the_same_training(tmp_path: Path) -> None:
    def script() -> None:
        model = mlp()
        for _ in range(3):
            train(model, torch.optim.SGD(model.parameters(), 0.1), 5)

    session = heard(script, tmp_path)
    assert [told.report.steps for told in session.told] == [15]


def test_what_only_seemed_to_begin_is_taken_up_again_with_the_rest(tmp_path: Path) -> None:
    def script() -> None:
        encoder, decoder = nn.Linear(X.shape[1], 8), nn.Linear(8, X.shape[1])
        first = torch.optim.SGD(encoder.parameters(), 0.1)
        encoder(X[:2])  # to see its shape
        second = torch.optim.SGD(decoder.parameters(), 0.1)
        for x, _ in batches(12):
            first.zero_grad()
            second.zero_grad()
            functional.mse_loss(decoder(encoder(x)), x).backward()
            first.step()
            second.step()

    session = heard(script, tmp_path)
    assert len(session.told) == 1
    assert len(list(tmp_path.iterdir())) == 1
    assert {path.split(".")[0] for path in parameters(session)} == {"encoder", "decoder"}


def test_models_without_end_are_not_followed_for_ever(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(listening_discovery, "MOST_TRAININGS", 2)

    def script() -> None:
        for _ in range(4):
            model = mlp()
            train(model, torch.optim.SGD(model.parameters(), 0.1), 2)

    session = heard(script, tmp_path)
    assert len(session.told) == 2
    assert any("2 more trainings" in note for note in session.told[-1].report.notes)


def test_the_loop_is_left_after_as_many_steps_as_were_asked_for(tmp_path: Path) -> None:
    session = heard(plain_script, tmp_path, steps=5)
    assert session.main().report.steps == 5


def test_a_compiled_model_is_compiled_once(tmp_path: Path) -> None:
    def script() -> None:
        model = mlp()
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        train(torch.compile(model, backend="eager", fullgraph=True), optimiser)

    torch._dynamo.reset()
    session = heard(script, tmp_path)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert session.main().report.steps == 12


def test_an_optimiser_of_an_earlier_cell_is_met(tmp_path: Path) -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    session = heard(lambda: train(model, optimiser), tmp_path, found_already=True)
    assert session.main().report.steps == 12
    assert stored(session, Step)[0].calls == ("zero_grad", "forward", "backward", "step")


def test_an_optimiser_of_an_earlier_cell_that_is_not_used_any_more_is_left_alone(tmp_path: Path) -> None:
    old = mlp()
    optimiser = torch.optim.SGD(old.parameters(), 0.1)
    session = heard(plain_script, tmp_path, found_already=True)
    assert [told.report.steps for told in session.told] == [12]
    assert optimiser.state == {}


def test_where_listening_fails_the_script_goes_on_and_the_report_says_so(tmp_path: Path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no model today")

    monkeypatch.setattr(discovery, "find_model", fail)
    session = Session("train.py", Options(directory=tmp_path))
    session.attend("torch")
    plain_script()
    session.end(None)
    assert any("no model today" in note for note in session.main().report.notes)


def _culprits(report: Report) -> list[str]:
    return [culprit.finding.name for culprit in report.culprits]


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path.parent)
