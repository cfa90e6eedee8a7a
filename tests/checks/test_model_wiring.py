"""unregistered-layers, frozen-parameters and disconnected-parameters."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence, Severity
from tests.checks.looking import look, training
from tests.material import digits

WIRING = ("unregistered-layers", "frozen-parameters", "disconnected-parameters", "parameters-not-optimised")


class Holder:
    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer


class Keeping(nn.Module):
    """A hidden layer kept in some way; `used` finds it again."""

    def __init__(self, keep, used) -> None:
        super().__init__()
        self.kept = keep(nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)
        self._used = used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self._used(self.kept)(x)))


STRAYS = {
    "list": (lambda layer: [layer], lambda kept: kept[0]),
    "tuple": (lambda layer: (layer,), lambda kept: kept[0]),
    "dict": (lambda layer: {"a": layer}, lambda kept: kept["a"]),
    "object": (Holder, lambda kept: kept.layer),
    "nested": (lambda layer: {"a": [Holder(layer)]}, lambda kept: kept["a"][0].layer),
}


@pytest.mark.parametrize("how", STRAYS)
def test_a_layer_is_found_wherever_it_hides_with_the_line_that_put_it_there(how: str) -> None:
    found = look(training(Keeping(*STRAYS[how])), "unregistered-layers").one()
    assert found.where == "kept"
    assert found.location is not None
    assert Path(found.location.file) == Path(__file__)
    assert "self.kept = keep" in found.location.text
    assert found.confidence is (Confidence.LIKELY if how == "object" else Confidence.CERTAIN)


def test_a_plain_tensor_that_wants_a_gradient_is_found() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.ones(64, requires_grad=True)
            self.head = nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x * self.scale)

    assert "nn.Parameter" in look(training(Scaled()), "unregistered-layers").one().fix


def test_layers_outside_the_model_are_fine_when_frozen_registered_as_well_or_optimised() -> None:
    frozen = Keeping(lambda layer: [layer.requires_grad_(False)], lambda kept: kept[0])
    assert not look(training(frozen), *WIRING).findings
    both = Keeping(*STRAYS["list"])
    both.add_module("also", both.kept[0])
    assert not look(training(both), *WIRING).findings
    held = Keeping(*STRAYS["list"])
    optimiser = torch.optim.Adam([*held.parameters(), *held.kept[0].parameters()])
    assert not look(training(held, optimizer=optimiser), *WIRING).findings


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))


def test_a_frozen_last_layer_is_accused_while_others_learn() -> None:
    model = mlp()
    model[4].requires_grad_(False)
    found = look(training(model), "frozen-parameters").one()
    assert found.where == "4.weight"
    assert found.severity is Severity.WARNING


def test_a_frozen_layer_in_the_middle_is_worth_a_hint() -> None:
    model = mlp()
    model[2].requires_grad_(False)
    assert look(training(model), "frozen-parameters").one().severity is Severity.HINT


class Moco(nn.Module):
    """A frozen momentum copy, run without a graph."""

    def __init__(self, teacher_first: bool = False) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.teacher_first = teacher_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = None if self.teacher_first else self.student(x)
        with torch.no_grad():
            self.teacher(x)
        return self.student(x) if scores is None else scores


class Distilled(nn.Module):
    """Random network distillation: a small net learns what a larger one says that nobody ever trains."""

    def __init__(self) -> None:
        super().__init__()
        self.target = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16)).requires_grad_(False)
        self.predictor = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.target(x) - self.predictor(x)


class Adapted(nn.Module):
    """A frozen base with small adapters that learn, and a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(64) * 0.02)
        self.base = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)]).requires_grad_(False)
        self.down = nn.ModuleList([nn.Linear(64, 4), nn.Linear(64, 4)])
        self.up = nn.ModuleList([nn.Linear(4, 64), nn.Linear(4, 64)])
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.prompt
        for base, down, up in zip(self.base, self.down, self.up, strict=True):
            x = torch.relu(base(x) + up(down(x)))
        return self.head(x)


def frozen(model: nn.Module, *parts: int) -> nn.Module:
    for part in parts:
        model[part].requires_grad_(False)
    return model


def trained(model: nn.Module, steps: int = 20, lr: float = 0.05) -> nn.Module:
    """On other digits, as a trunk that deserves to be frozen was."""
    x, y = (torch.as_tensor(a) for a in digits())
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[y < 5]), y[y < 5]).backward()
        optimiser.step()
    return model


def normed(start) -> nn.Sequential:
    """Convolutions with batch norm, started by hand; the last layer is the head."""
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(),
        nn.Linear(16, 10),
    )  # fmt: skip
    for module in model:
        if isinstance(module, nn.Conv2d):
            start(module.weight)
    return model


def no_trunk_of(size: float) -> nn.Sequential:
    """A deep reservoir: random on purpose, and scaled for it."""
    model = mlp()
    with torch.no_grad():
        model[0].weight.mul_(size)
        model[2].weight.mul_(size)
    return frozen(model, 0, 2)


def only_biases(model: nn.Module) -> nn.Module:
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return model


def mlp_on(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 10))


def frozen_norm() -> nn.Module:
    return frozen(nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)), 1)


DELIBERATE = {
    "trunk": lambda: frozen(trained(mlp()), 0, 2),
    "trunk after three small steps": lambda: frozen(trained(mlp(), steps=3, lr=0.01), 0, 2),
    "trunk with norms": lambda: frozen(trained(normed(nn.init.kaiming_normal_)), 1, 2, 4, 5),
    "half a fresh net": lambda: frozen(
        nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), mlp_on(16)), 0, 2
    ),
    "random features": lambda: frozen(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)), 0),
    "deep reservoir": lambda: no_trunk_of(1.3),
    "first layer": lambda: frozen(mlp(), 0),
    "momentum teacher": Moco,
    "momentum teacher that runs first": lambda: Moco(teacher_first=True),
    "random target": Distilled,
    "adapters": Adapted,
    "biases only": lambda: only_biases(mlp()),
    "norm": frozen_norm,
    "input and output layers only": lambda: frozen(
        nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        ),
        2,
        4,
    ),
    "frozen decoder": lambda: frozen(mlp(), 2, 4),
}


@pytest.mark.parametrize("name", DELIBERATE)
def test_freezing_that_is_somebodys_plan_is_not_accused(name: str) -> None:
    assert not look(training(DELIBERATE[name]()), *WIRING).findings


UNTRAINED = {
    "default": (lambda: frozen(mlp(), 0, 2), "end exactly where a fresh draw ends"),
    "glorot": (lambda: frozen(started(mlp(), nn.init.xavier_uniform_), 0, 2), "end exactly where a fresh draw ends"),
    "norms": (lambda: frozen(normed(nn.init.kaiming_normal_), 1, 2, 4, 5), "scale by exactly one"),
    "zero biases": (lambda: frozen(started(mlp(), nn.init.kaiming_normal_), 0, 2), "biases are still exactly zero"),
    "half precision": (lambda: frozen(mlp(), 0, 2).bfloat16(), "end exactly where a fresh draw ends"),
}


def started(model: nn.Sequential, start) -> nn.Sequential:
    for module in model:
        if isinstance(module, nn.Linear):
            start(module.weight)
            nn.init.zeros_(module.bias)
    return model


@pytest.mark.parametrize("name", UNTRAINED)
def test_a_frozen_trunk_that_nobody_trained_is_accused_with_what_shows_it(name: str) -> None:
    build, mark = UNTRAINED[name]
    data = digits()
    if "half" in name:
        data = (torch.as_tensor(data[0]).bfloat16(), data[1])
    found = look(training(build(), data=data), "frozen-parameters").one()
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.LIKELY
    assert mark in found.summary
    assert "pretrained weights" in found.fix


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
