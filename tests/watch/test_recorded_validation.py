"""What is recorded of a loop beside its steps: validation, batches, accumulated parts."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, TensorDataset

import sleuth
from sleuth.core.observation import Absent, Accumulation, Batch, Evaluation, Predictions, Split
from tests.watch.recorded_loops import data, stepping, watched
from tests.watch.scenarios import X, Y, mlp


def plain(scores, y):
    return functional.cross_entropy(scores, y)


def evaluate(model, batches, loss=plain):
    model.eval()
    total = right = samples = 0
    with torch.no_grad():
        for x, y in batches:
            scores = model(x)
            total += loss(scores, y).item() * len(y)
            right += int((scores.argmax(1) == y).sum())
            samples += len(y)
    model.train()
    return total / samples, right / samples


def with_validation(train, evaluated, epochs=2, loss=plain):
    """Evaluations that were measured, and what the loop itself computed."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    own = []

    def loop(w):
        for _ in range(epochs):
            for x, y in train():
                optimiser.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            own.append([evaluate(model, batches(), loss) for batches in evaluated])

    return watched(model, optimiser, loop), own


def test_validation_is_recognised_and_measured() -> None:
    train, validation = TensorDataset(*data(slice(0, 1400))), TensorDataset(*data(slice(1400, None)))
    loaders = DataLoader(train, 32, shuffle=True), DataLoader(validation, 64)
    history, own = with_validation(lambda: loaders[0], [lambda: loaders[1]])
    found = history.many(Evaluation)
    assert [e.split for e in found] == [Split.VALIDATION] * 2
    assert [e.step for e in found] == [44, 88]
    for evaluation, ((loss, accuracy),) in zip(found, own, strict=True):
        assert evaluation.metrics["loss"] == pytest.approx(loss, rel=1e-5)
        assert evaluation.metrics["accuracy"] == pytest.approx(accuracy)
    counted = [p for p in history.many(Predictions) if p.split is Split.VALIDATION]
    assert [p.samples for p in counted] == [397, 397]


def test_an_evaluation_of_the_training_data_is_no_validation() -> None:
    train, validation = TensorDataset(*data(slice(0, 1400))), TensorDataset(*data(slice(1400, None)))
    loaders = DataLoader(train, 32, shuffle=True), DataLoader(train, 64), DataLoader(validation, 64)
    history, own = with_validation(lambda: loaders[0], [lambda: loaders[1], lambda: loaders[2]], epochs=1)
    found = {e.split: e.metrics["loss"] for e in history.many(Evaluation)}
    assert found[Split.TRAIN] == pytest.approx(own[0][0][0], rel=1e-5)
    assert found[Split.VALIDATION] == pytest.approx(own[0][1][0], rel=1e-5)


def test_parts_of_one_set_are_told_apart() -> None:
    """By random_split; by two samplers on one set they cannot be, and then nothing is said."""
    whole = TensorDataset(*data())
    parts = Subset(whole, range(1400)), Subset(whole, range(1400, 1797))
    history, _ = with_validation(lambda: DataLoader(parts[0], 64), [lambda: DataLoader(parts[1], 64)], epochs=1)
    assert [e.split for e in history.many(Evaluation)] == [Split.VALIDATION]
    drawn = [torch.utils.data.SubsetRandomSampler(part) for part in (range(1400), range(1400, 1797))]
    loaders = [DataLoader(whole, 64, sampler=sampler) for sampler in drawn]
    history, _ = with_validation(lambda: loaders[0], [lambda: loaders[1]], epochs=1)
    assert not history.has(Evaluation)


def test_arrays_without_a_loader_are_validated_too() -> None:
    x, y = data()
    full, rest = (x[:1400], y[:1400]), (x[1400:], y[1400:])
    history, own = with_validation(lambda: [full] * 10, [lambda: [full], lambda: [rest]], epochs=1)
    found = {e.split: e.metrics["loss"] for e in history.many(Evaluation)}
    assert found == pytest.approx({Split.TRAIN: own[0][0][0], Split.VALIDATION: own[0][1][0]}, rel=1e-5)


def test_another_loss_than_that_of_training_is_not_compared_with_it() -> None:
    def smoothed(scores, y):
        return functional.cross_entropy(scores, y, label_smoothing=0.1)

    batches = [data(slice(0, 64))]
    history, _ = with_validation(lambda: [data(slice(64, 256))] * 5, [lambda: batches], loss=smoothed)
    assert not history.has(Evaluation)


def test_teachers_targets_and_samples_are_no_validation() -> None:
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
    teacher = copy.deepcopy(student).eval()
    optimiser = torch.optim.SGD(student.parameters(), 0.1)

    def loop(w):
        for _ in range(5):
            with torch.no_grad():
                soft = teacher(X).softmax(1)
                functional.mse_loss(teacher(X), torch.zeros(64, 4))
                student.eval()
                target = student(X)
                student.train()
            optimiser.zero_grad()
            (functional.mse_loss(student(X).softmax(1), soft) + functional.mse_loss(student(X), target)).backward()
            optimiser.step()

    assert not watched(student, optimiser, loop).has(Evaluation)


def test_a_penalty_beside_the_loss_keeps_the_accuracy_only() -> None:
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)

    def loop(w):
        for _ in range(5):
            x, y = data(slice(0, 256))
            optimiser.zero_grad()
            (functional.cross_entropy(model(x), y) + 0.1 * model.weight.norm()).backward()
            optimiser.step()
        evaluate(model, [data(slice(256, 512))])

    assert [set(e.metrics) for e in watched(model, optimiser, loop).many(Evaluation)] == [{"accuracy"}]


def test_the_first_batches_are_described() -> None:
    x, y = data()
    loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    history, _ = with_validation(lambda: loader, [], epochs=1)
    batches = history.many(Batch)
    assert 8 <= len(batches) <= 24
    assert {b.split for b in batches} == {Split.TRAIN}
    assert batches[0].inputs[0].shape == (32, 64)
    assert batches[0].features.shape[0] == 64
    assert sum(batches[0].labels.values()) == 32


@pytest.mark.parametrize("kind", ["two forwards", "made by a model", "a list of samples", "sorted by class"])
def test_where_the_data_cannot_be_told_no_batch_is_described(kind: str) -> None:
    torch.manual_seed(0)
    model, before = mlp(), nn.Linear(12, 12)

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, samples):
            return self.inner(torch.stack(samples))

    listed = Listed()
    zeros = X[Y == 0]
    losses = {
        "two forwards": lambda: functional.mse_loss(model(X), torch.ones(64, 4)) + model(X + 1).mean(),
        "made by a model": lambda: functional.cross_entropy(model(before(X)), Y),
        "a list of samples": lambda: functional.cross_entropy(listed(list(X)), Y),
        "sorted by class": lambda: functional.cross_entropy(model(zeros), torch.zeros(len(zeros), dtype=torch.long)),
    }
    history = stepping(listed if kind.startswith("a list") else model, losses[kind], steps=10)
    assert not any(b.labels for b in history.many(Batch))
    assert kind == "sorted by class" or not history.has(Batch)


def test_parts_of_a_step_are_noted_with_what_went_backward() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)

    def loop(w):
        for _ in range(3):
            for rows in (slice(0, 32), slice(32, 64)):
                (functional.cross_entropy(model(X[rows]), Y[rows]) / 2).backward()
            optimiser.step()
            optimiser.zero_grad()

    found = watched(model, optimiser, loop).many(Accumulation)
    assert len(found) == 3
    assert not any(step.touched for step in found)
    assert all(part.value == pytest.approx(part.returned / 2) for step in found for part in step.parts)
    assert [step.forwards for step in found] == [2, 2, 2]


def test_a_gradient_that_was_changed_by_hand_is_noticed() -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 0.1)

    def loop(w):
        for _ in range(3):
            for rows in (slice(0, 32), slice(32, 64)):
                functional.cross_entropy(model(X[rows]), Y[rows]).backward()
            for p in model.parameters():
                p.grad.data /= 2
            optimiser.step()
            optimiser.zero_grad()

    assert all(step.touched for step in watched(model, optimiser, loop).many(Accumulation))


def test_absence_is_an_observation_that_a_replay_has_too(tmp_path) -> None:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    with sleuth.watch(model, optimiser, directory=tmp_path, quiet=True) as w:
        for _ in range(4):
            optimiser.zero_grad()
            (model(X) ** 2).mean().backward()
            optimiser.step()
    live, again = w.report(), sleuth.load(next(tmp_path.iterdir()))
    assert live.not_examined["double-softmax"] == again.not_examined["double-softmax"]
    assert Absent.__name__ not in live.clear
