"""Validation is recognised from one call on: batches drawn by hand, a model that returns its loss, other reductions."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sleuth.core.observation import CallKind, Evaluation, Phase, Split
from tests.watch.recorded_loops import data, stepping, watched
from tests.watch.scenarios import X, Y
from tests.watch.test_recorded_validation import evaluate


class WithLoss(nn.Module):
    """Returns its loss, as a GPT does."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))

    def forward(self, x, targets):
        scores = self.body(x)
        return scores, functional.cross_entropy(scores, targets)


def drawing(evaluations, steps=8, every=4):
    """A loop that draws its batches by hand; `evaluations(model, get_batch)` is called after every fourth step."""
    torch.manual_seed(0)
    model = WithLoss()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    x, y = data()
    parts = {"train": (x[:1400], y[:1400]), "val": (x[1400:], y[1400:])}
    own = []

    def get_batch(split):
        xs, ys = parts[split]
        rows = torch.randint(len(xs), (32,))
        return xs[rows], ys[rows]

    def loop(w):
        for step in range(steps + 1):
            if step % every == 0 and step:
                own.append(evaluations(model, get_batch))
            if step < steps:
                _, loss = model(*get_batch("train"))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    return watched(model, optimiser, loop), own


def estimated(model, get_batch, splits=("train", "val"), calls=3, mode=False):
    if not mode:
        model.eval()
    out = {}
    with torch.no_grad():
        for split in splits:
            out[split] = sum(model(*get_batch(split))[1].item() for _ in range(calls)) / calls
    model.train()
    return out


def once(model, batch):
    model.eval()
    with torch.no_grad():
        model(*batch)
    model.train()


def told(history):
    return [(e.step, e.split, e.metrics.get("loss")) for e in history.many(Evaluation)]


@pytest.mark.parametrize("mode", [False, True])
def test_the_word_of_the_split_tells_an_evaluation_of_both_apart(mode: bool) -> None:
    history, own = drawing(lambda model, get_batch: estimated(model, get_batch, mode=mode))
    validated = [(step, loss) for step, split, loss in told(history) if split is Split.VALIDATION]
    assert validated == [(4, pytest.approx(own[0]["val"], rel=1e-4)), (8, pytest.approx(own[1]["val"], rel=1e-4))]
    trained = [loss for _, split, loss in told(history) if split is Split.TRAIN]
    # In training mode a row of calls on the training's data is nobody's evaluation for sure.
    assert trained == ([] if mode else pytest.approx([out["train"] for out in own], rel=1e-4))


def test_one_call_is_a_validation() -> None:
    history, own = drawing(lambda model, get_batch: estimated(model, get_batch, ("val",), calls=1))
    assert told(history) == [
        (step, Split.VALIDATION, pytest.approx(out["val"], rel=1e-4)) for step, out in zip((4, 8), own, strict=True)
    ]
    assert [(p.step, p.kind, p.calls) for p in history.many(Phase)] == [(4, CallKind.VALIDATE, 1), (8, CallKind.VALIDATE, 1)]


def test_an_evaluation_of_the_training_split_alone_is_not_taken_for_validation() -> None:
    history, _ = drawing(lambda model, get_batch: estimated(model, get_batch, ("train",)))
    assert not history.has(Evaluation)


def test_two_evaluations_that_nothing_names_are_not_mixed() -> None:
    """One of them may be of the training's data."""

    def both(model, get_batch):
        once(model, get_batch("train"))
        once(model, get_batch("val"))

    assert not drawing(both)[0].has(Evaluation)
    assert len(told(drawing(lambda model, get_batch: once(model, get_batch("val")))[0])) == 2


def test_a_word_of_the_training_itself_hides_no_validation() -> None:
    def run(w, model, optimiser, mode="train"):
        for _ in range(4):
            x, y = data(slice(0, 256))
            optimiser.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            evaluate(model, [data(slice(256, 512))])

    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    history = watched(model, optimiser, lambda w: run(w, model, optimiser))
    assert [split for _, split, _ in told(history)] == [Split.VALIDATION] * 4


def test_reading_the_words_leaves_the_users_own_variables_alone() -> None:
    kept = []

    def asked(model, get_batch, split="val"):
        given = locals()
        once(model, get_batch(split))
        kept.append(sorted(given))

    drawing(asked)
    assert kept == [["get_batch", "kept", "model", "split"]] * 2


@pytest.mark.parametrize("trained", ["mean", "sum over samples"])
@pytest.mark.parametrize("validated", ["mean", "sum", "none"])
def test_another_reduction_comes_to_the_training_s_scale(trained: str, validated: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    x, y = data(slice(0, 256))
    rest = DataLoader(TensorDataset(*data(slice(256, 500))), 64)

    def loop(w):
        for _ in range(5):
            optimiser.zero_grad()
            scores = model(x)
            whole = functional.cross_entropy(scores, y, reduction="sum") / len(y)
            (functional.cross_entropy(scores, y) if trained == "mean" else whole).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            for a, b in rest:
                functional.cross_entropy(model(a), b, reduction=validated)

    ((_, split, loss),) = told(watched(model, optimiser, loop))
    with torch.no_grad():
        wanted = functional.cross_entropy(model(rest.dataset.tensors[0]), rest.dataset.tensors[1]).item()
    assert (split, loss) == (Split.VALIDATION, pytest.approx(wanted, rel=1e-4))


def test_validation_that_builds_a_graph_is_one_where_its_loader_is_another() -> None:
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    loaders = [DataLoader(TensorDataset(*data(rows)), 64) for rows in (slice(0, 256), slice(256, 512))]

    def loop(w):
        for _ in range(2):
            model.train()
            for x, y in loaders[0]:
                optimiser.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimiser.step()
            model.eval()
            for x, y in loaders[1]:
                functional.cross_entropy(model(x), y)

    found = told(watched(model, optimiser, loop))
    assert [(step, split) for step, split, _ in found] == [(4, Split.VALIDATION), (8, Split.VALIDATION)]


def test_a_target_that_the_model_itself_gives_is_no_validation() -> None:
    """As in Q-learning without a second network; in evaluation mode throughout."""
    torch.manual_seed(0)
    model = nn.Linear(12, 4).eval()

    def loss():
        said = model(X)
        with torch.no_grad():
            target = 0.9 * model(X + 1) + 1
        return functional.mse_loss(said, target)

    assert not stepping(model, loss, steps=8).has(Evaluation)


def test_an_attack_in_evaluation_mode_is_no_validation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 16), nn.Dropout(0.1), nn.Linear(16, 4))

    def loss():
        model.eval()
        x = X.clone().requires_grad_()
        (slope,) = torch.autograd.grad(functional.cross_entropy(model(x), Y), x)
        model.train()
        return functional.cross_entropy(model(X + 0.1 * slope.sign()), Y)

    assert not stepping(model, loss, steps=8).has(Evaluation)
