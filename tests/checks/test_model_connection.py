"""disconnected-parameters: a cut is named with its place, tricks that keep the gradient are fine."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence, Severity
from tests.checks.looking import WIRING, look, training


class Wired(nn.Module):
    """Features, something between, a head."""

    def __init__(self, between) -> None:
        super().__init__()
        self.features, self.head, self.between = nn.Linear(64, 32), nn.Linear(32, 10), between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.between(self, x)


def under_no_grad(model: Wired, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        hidden = model.features(x)
    return model.head(hidden)


def through_numpy(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = np.tanh(model.features(x).detach().numpy())
    return model.head(torch.from_numpy(hidden))


def through_a_buffer(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    kept = torch.zeros_like(hidden)
    kept.data.copy_(hidden.data)
    return model.head(kept)


def under_inference_mode(model: Wired, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        hidden = model.features(x)
    return model.head(hidden.clone())


@torch.no_grad()
def encoded(model: Wired, x: torch.Tensor) -> torch.Tensor:
    return torch.relu(model.features(x))


def written_by_index(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    kept = torch.zeros(len(x), 32)
    for i in range(len(x)):
        kept[i] = hidden[i].detach()
    return model.head(kept)


def by_number(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    level = hidden.mean().item()
    return model.head(torch.full((len(x), 32), level))


CUTS = {
    "detach": lambda m, x: m.head(m.features(x).detach()),
    "data": lambda m, x: m.head(m.features(x).data),
    "no_grad": under_no_grad,
    "argmax": lambda m, x: m.head(nn.functional.one_hot(m.features(x).argmax(1), 32).float()),
    "gt": lambda m, x: m.head((m.features(x) > 0).float()),
    "tensor": lambda m, x: m.head(torch.tensor(m.features(x), requires_grad=True)),
    "numpy": through_numpy,
    "tolist": lambda m, x: m.head(torch.tensor(m.features(x).tolist())),
    "data of a buffer": through_a_buffer,
    "inference_mode": under_inference_mode,
    "no_grad as a decorator": lambda m, x: m.head(encoded(m, x)),
    "no_grad by a switch": lambda m, x: m.head(torch.set_grad_enabled(False)(m.features)(x)),
    "detach into a slice": written_by_index,
    "item": by_number,
    "wrapped": lambda m, x: m.head(nn.Parameter(m.features(x))),
    "data in a parameter": lambda m, x: m.head(nn.Parameter(m.features(x).data)),
    "new_tensor": lambda m, x: m.head(x.new_tensor(m.features(x))),
    "tensor of numbers": lambda m, x: m.head(torch.tensor([list(row) for row in m.features(x)])),
    "__float__": lambda m, x: m.head(torch.tensor([[float(v) for v in row] for row in m.features(x)])),
    "__array__": lambda m, x: m.head(torch.as_tensor(np.tanh(np.asarray(m.features(x).data)))),
    "round": lambda m, x: m.head(m.features(x).round()),
    "sign": lambda m, x: m.head(torch.sign(m.features(x))),
    "bernoulli": lambda m, x: m.head(torch.bernoulli(torch.sigmoid(m.features(x)))),
    "long": lambda m, x: m.head(m.features(x).long().float()),
    "topk": lambda m, x: m.head(nn.functional.one_hot(m.features(x).topk(3).indices, 32).sum(1).float()),
    "sample": lambda m, x: m.head(torch.distributions.Normal(m.features(x), 1.0).sample()),
}


# Where the values come back cannot be followed.
LEAVING = ("numpy", "tolist", "item", "__float__", "__array__")


IN_THE_LOSS = {
    "detach": lambda out, y: nn.functional.cross_entropy(out.detach(), y),
    "item": lambda out, y: torch.tensor(nn.functional.cross_entropy(out, y).item(), requires_grad=True),
    "argmax": lambda out, y: nn.functional.mse_loss(out.argmax(1).float(), y.float()),
    "tensor": lambda out, y: torch.tensor([nn.functional.cross_entropy(out, y)], requires_grad=True).sum(),
    "data": lambda out, y: nn.functional.cross_entropy(torch.autograd.Variable(out.data, requires_grad=True), y),
    "numpy": lambda out, y: torch.tensor(1 - out.softmax(1).detach().numpy()[:, 0].mean() / len(y), requires_grad=True),
}


@pytest.mark.parametrize("operation", IN_THE_LOSS)
def test_a_cut_inside_the_loss_takes_every_parameter(operation: str) -> None:
    model = Wired(lambda m, x: m.head(torch.relu(m.features(x))))
    found = look(training(model, IN_THE_LOSS[operation]), "disconnected-parameters").one()
    assert "none of the 4 parameters" in found.summary
    assert found.numbers["operation"] == operation
    assert found.location is not None
    assert f'"{operation}":' in found.location.text
    assert found.fix[0].isupper()


@pytest.mark.parametrize("operation", CUTS)
def test_the_place_where_the_graph_is_cut_is_named(operation: str) -> None:
    found = look(training(Wired(CUTS[operation])), "disconnected-parameters").one()
    assert found.severity is Severity.ERROR
    assert found.where == "features"
    assert found.numbers["operation"] == operation.split()[0]
    assert found.location is not None
    assert Path(found.location.file) == Path(__file__)
    assert found.confidence is (Confidence.LIKELY if operation in LEAVING else Confidence.CERTAIN)


def test_a_loss_without_any_graph_is_a_cut_of_everything() -> None:
    found = look(training(Wired(lambda m, x: m.head(m.features(x)).detach())), "disconnected-parameters").one()
    assert "none of the 4 parameters" in found.summary


def test_an_unused_layer_and_a_thrown_away_result_are_told_apart() -> None:
    class Skipping(nn.Module):
        def __init__(self, compute: bool) -> None:
            super().__init__()
            self.hidden, self.head, self.compute = nn.Linear(64, 64), nn.Linear(64, 10), compute

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.compute:
                self.hidden(x)
            return self.head(x)

    unused = look(training(Skipping(compute=False)), "disconnected-parameters").one()
    assert "nothing in the forward pass uses them" in unused.summary
    thrown = look(training(Skipping(compute=True)), "disconnected-parameters").one()
    assert "thrown away" in thrown.summary
    assert thrown.severity is Severity.ERROR


def test_a_small_unused_part_is_worth_a_hint_only() -> None:
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.pooler, self.head = nn.Linear(64, 256), nn.Linear(8, 8), nn.Linear(256, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.body(x)))

    assert look(training(Pooled()), "disconnected-parameters").one().severity is Severity.HINT


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Experts(nn.Module):
    """Each sample goes to one expert: one batch may pass an expert by."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 12)
        self.experts = nn.ModuleList([nn.Linear(64, 10) for _ in range(12)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.gate(x).softmax(1)
        choice = weights.argmax(1)
        out = torch.zeros(len(x), 10)
        for i, expert in enumerate(self.experts):
            rows = choice == i
            if rows.any():
                out[rows] = expert(x[rows]) * weights[rows, i : i + 1]
        return out


def with_metrics(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    model.activity = (hidden.detach().norm().item(), hidden.argmax(1).tolist(), hidden.data.mean())
    return model.head(hidden)


def straight_through_by_detach(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    return model.head(hidden + (hidden.round() - hidden).detach())


def checkpointed(model: Wired, x: torch.Tensor) -> torch.Tensor:
    from torch.utils.checkpoint import checkpoint

    return model.head(checkpoint(model.features, x, use_reentrant=False))


def rounded_beside(model: Wired, x: torch.Tensor) -> torch.Tensor:
    hidden = model.features(x)
    return model.head(hidden + 0.1 * hidden.round())


class Byol(nn.Module):
    """The target follows by a moving average; it was neither frozen nor left out of the optimiser."""

    def __init__(self) -> None:
        super().__init__()
        self.online = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32))
        self.target = copy.deepcopy(self.online)
        self.predictor, self.head = nn.Linear(32, 32), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.online(x)
        with torch.no_grad():
            wanted = self.target(x)
        return self.head(hidden) + (self.predictor(hidden) * wanted).sum(1, keepdim=True)


class Quantised(nn.Module):
    """Codes are chosen by argmin; the gradient goes straight through, and the codes have a loss of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.codes, self.head = nn.Linear(64, 16), nn.Embedding(20, 16), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(x)
        chosen = self.codes(torch.cdist(hidden, self.codes.weight).argmin(1))
        pull = (chosen - hidden.detach()).pow(2).mean() + (hidden - chosen.detach()).pow(2).mean()
        return self.head(hidden + (chosen - hidden).detach()) + pull


class FedBack(nn.Module):
    """The word that was chosen goes in as the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.words, self.cell, self.head = (
            nn.Linear(64, 16),
            nn.Embedding(10, 16),
            nn.GRUCell(16, 16),
            nn.Linear(16, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, word = torch.tanh(self.start(x)), torch.zeros(len(x), dtype=torch.long)
        for _ in range(3):
            state = self.cell(self.words(word), state)
            scores = self.head(state)
            word = scores.argmax(1)
        return scores


CONNECTED = {
    "metrics": lambda: Wired(with_metrics),
    "straight through by detach": lambda: Wired(straight_through_by_detach),
    "straight through by hand": lambda: Wired(lambda m, x: m.head(Straight.apply(m.features(x)))),
    "checkpoint": lambda: Wired(checkpointed),
    "teacher that follows": Byol,
    "quantised codes": Quantised,
    "gumbel": lambda: Wired(lambda m, x: m.head(nn.functional.gumbel_softmax(m.features(x), hard=True))),
    "fed back": FedBack,
    "round beside the value": lambda: Wired(rounded_beside),
    "experts": Experts,
    "attention": lambda: nn.Sequential(
        nn.Unflatten(1, (8, 8)),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        nn.Flatten(),
        nn.Linear(64, 10),
    ),
    "multiplied by hand": lambda: Wired(lambda m, x: m.head(nn.functional.linear(x, m.features.weight, m.features.bias))),
}


@pytest.mark.parametrize("name", CONNECTED)
def test_detached_metrics_and_tricks_that_keep_the_gradient_are_fine(name: str) -> None:
    assert not look(training(CONNECTED[name]()), *WIRING).findings


def test_a_stop_gradient_between_two_views_is_fine() -> None:
    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.predictor = nn.Linear(64, 32), nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.encoder(x)

    def step(model: Siamese, batch: list[torch.Tensor]) -> torch.Tensor:
        one, other = (model(batch[0] + 0.1 * torch.randn_like(batch[0])) for _ in range(2))
        return -nn.functional.cosine_similarity(model.predictor(one), other.detach()).mean()

    assert not look(training(Siamese(), step=step), *WIRING, "gradient-wrong").findings
