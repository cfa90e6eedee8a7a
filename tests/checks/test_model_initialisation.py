"""bad-initialisation, signal-grows-or-fades and dead-units: clear illnesses, and the odd starts that are meant."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence, Severity
from tests.checks.looking import look, training
from tests.checks.test_model_dependence import Made
from tests.material import digit_images

STARTS = ("bad-initialisation", "signal-grows-or-fades", "dead-units")


def mlp(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


def fill(model: nn.Module, weight, bias=nn.init.zeros_) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            weight(module.weight)
            if module.bias is not None:
                bias(module.bias)
    return model


class LoRA(nn.Module):
    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.base = nn.Linear(width_in, width_out).requires_grad_(False)
        self.down = nn.Linear(width_in, 4, bias=False)
        self.up = nn.Linear(4, width_out, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))


class Branch(nn.Module):
    """A residual branch whose last layer starts at zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.last(torch.relu(self.first(x)))


class Gated(nn.Module):
    """adaLN-zero: scale, shift and gate come from a layer that starts at zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(width, 3 * width)
        self.body = nn.Linear(width, width)
        nn.init.zeros_(self.modulate.weight)
        nn.init.zeros_(self.modulate.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, shift, gate = self.modulate(x).chunk(3, dim=-1)
        return x + gate * self.body(self.norm(x) * (1 + scale) + shift)


class Positions(nn.Module):
    """A table of positions that starts at zero and is longer than any input."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(64, 16))
        self.embed, self.head = nn.Linear(8, 16), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, 8, 8)
        return self.head(torch.relu(self.embed(rows) + self.table[:8]).mean(1))


class Beside(nn.Module):
    """Blocks of a value and a gate, or of two branches; with a skip the signal keeps its size."""

    def __init__(self, blocks: int, gated: bool, skip: bool, gain: float = 0.6) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(64, 32), nn.Linear(32, 10)
        self.one = nn.ModuleList([nn.Linear(32, 32, bias=False) for _ in range(blocks)])
        self.two = nn.ModuleList([nn.Linear(32, 32) for _ in range(blocks)])
        for layer in (*self.one, *(() if gated else self.two)):
            nn.init.normal_(layer.weight, std=gain * 32**-0.5)
        self.gated, self.skip = gated, skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.enter(x)
        for one, two in zip(self.one, self.two, strict=True):
            new = one(h) * torch.sigmoid(two(h)) if self.gated else one(torch.relu(h)) + 0.8 * two(torch.relu(h))
            h = h + new if self.skip else new
        return self.head(h)


class Handmade(nn.Module):
    """One layer of the user's own with 32 × 64 positive numbers, and a usual one."""

    def __init__(self, use) -> None:
        super().__init__()
        self.own = Positive(use)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.own(x)))


class Positive(nn.Module):
    def __init__(self, use) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(32, 64))
        self._use = use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._use(x, self.weight)


def without_memory(layer: nn.LSTM) -> nn.LSTM:
    nn.init.zeros_(layer.weight_hh_l0)
    return layer


class SparseCode(nn.Module):
    """LISTA: three rounds of soft shrinkage towards a code in which most entries of a sample are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.again = nn.Linear(64, 96, bias=False), nn.Linear(96, 96, bias=False)
        self.shrink = nn.Softshrink(0.15)
        self.head = nn.Linear(96, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.enter(x)
        code = self.shrink(given)
        for _ in range(2):
            code = self.shrink(given + self.again(code))
        return self.head(code)


def last_zero(model: nn.Sequential) -> nn.Sequential:
    nn.init.zeros_(model[-1].weight)
    return model


def hidden_zero(model: nn.Sequential) -> nn.Sequential:
    nn.init.zeros_(model[0].weight)
    nn.init.zeros_(model[0].bias)
    return model


def tiny_last(model: nn.Sequential) -> nn.Sequential:
    nn.init.normal_(model[-1].weight, std=1e-4)
    return model


HEALTHY = {
    "default": lambda: mlp(64, 64, 32, 10),
    "twenty default layers": lambda: mlp(64, *[32] * 20, 10),
    "one zero layer": lambda: fill(nn.Sequential(nn.Linear(64, 10)), nn.init.zeros_),
    "last layer zero": lambda: last_zero(mlp(64, 64, 32, 10)),
    "last layer tiny": lambda: tiny_last(mlp(64, 64, 32, 10)),
    "zero before tanh": lambda: hidden_zero(mlp(64, 32, 10, activation=nn.Tanh)),
    "zero before GELU": lambda: hidden_zero(mlp(64, 32, 10, activation=nn.GELU)),
    "zero before hard swish": lambda: hidden_zero(mlp(64, 32, 10, activation=nn.Hardswish)),
    "a sparse code": SparseCode,
    "xavier": lambda: fill(mlp(64, 64, 64, 10), nn.init.xavier_uniform_),
    "orthogonal": lambda: fill(mlp(64, 64, 64, 10), nn.init.orthogonal_),
    "kaiming fan out": lambda: fill(mlp(64, 128, 16, 10), lambda w: nn.init.kaiming_normal_(w, mode="fan_out")),
    "0.02 everywhere": lambda: fill(mlp(64, 64, 64, 10), lambda w: nn.init.normal_(w, std=0.02)),
    "lora": lambda: nn.Sequential(LoRA(64, 32), nn.ReLU(), LoRA(32, 10)),
    "zero branches and a zero head": lambda: last_zero(
        nn.Sequential(nn.Linear(64, 32), Branch(32), Branch(32), nn.Linear(32, 10))
    ),
    "twenty residual blocks": lambda: nn.Sequential(nn.Linear(64, 32), *[Branch(32) for _ in range(20)], nn.Linear(32, 10)),
    "adaptive norm zero": lambda: last_zero(nn.Sequential(nn.Linear(64, 32), Gated(32), Gated(32), nn.Linear(32, 10))),
    "positions": Positions,
    "big weights before a norm": lambda: nn.Sequential(
        fill(nn.Linear(64, 64), lambda w: nn.init.normal_(w, std=2.0)), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)
    ),
    "tiny weights before a norm": lambda: nn.Sequential(
        fill(nn.Linear(64, 64), lambda w: nn.init.normal_(w, std=1e-4)), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 10)
    ),
    "selu": lambda: fill(
        mlp(64, 64, 64, 64, 10, activation=nn.SELU), lambda w: nn.init.kaiming_normal_(w, nonlinearity="linear")
    ),
    "lstm": lambda: Rows(nn.LSTM(8, 24, batch_first=True)),
    "lstm that starts without memory": lambda: Rows(without_memory(nn.LSTM(8, 24, batch_first=True))),
    "gates with skips": lambda: Beside(10, gated=True, skip=True),
    "few gates without skips": lambda: Beside(4, gated=True, skip=False),
    "eight residual blocks that double": lambda: Beside(8, gated=False, skip=True, gain=1.1),
    "positive prototypes": lambda: Handmade(lambda x, w: torch.cdist(x, w)),
    "a positive mask over the pixels": lambda: Handmade(lambda x, w: (8 * x * w[0]) @ torch.eye(64, 32)),
    "positive by construction": lambda: Handmade(lambda x, w: x @ w.abs().t() / 16),
    "a learned average": lambda: Handmade(lambda x, w: 20 * x @ w.softmax(1).t()),
    "relu rnn": lambda: Rows(nn.RNN(8, 24, nonlinearity="relu", batch_first=True)),
}


class Rows(nn.Module):
    def __init__(self, body: nn.Module, width: int = 24) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x.reshape(-1, 8, 8))[0][:, -1])


@pytest.mark.parametrize("name", HEALTHY)
def test_starts_that_are_meant_are_not_accused(name: str) -> None:
    seen = look(training(HEALTHY[name]()), *STARTS)
    assert not seen.findings, seen.findings[0].summary
    assert "bad-initialisation" not in seen.not_examined


def test_a_model_of_equal_constants_stays_symmetric_whatever_the_activation() -> None:
    for activation in (nn.ReLU, nn.Tanh, nn.Sigmoid):
        model = fill(mlp(64, 32, 16, 10, activation=activation), lambda w: nn.init.constant_(w, 0.05))
        found = look(training(model), "bad-initialisation").one()
        assert found.severity is Severity.ERROR
        assert found.confidence is Confidence.CERTAIN


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_recurrent_units_of_one_number_stay_symmetric_although_their_first_gradients_cancel(cell: type[nn.RNNBase]) -> None:
    model = Rows(cell(8, 33, batch_first=True), 33)  # a width at which sums are blocked unevenly, so that rounding differs
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    found = look(training(model), "bad-initialisation").one()
    assert found.confidence is Confidence.CERTAIN
    assert found.numbers["equal"] == len(model.body.bias_ih_l0)


def test_positive_weights_of_a_layer_of_ones_own_are_found_where_they_sum_their_inputs() -> None:
    found = look(training(Handmade(lambda x, w: x @ w.t())), "bad-initialisation").one()
    assert found.where == "own.weight"
    assert "are positive" in found.summary


def test_copied_rows_are_found_although_no_weight_is_constant() -> None:
    model = mlp(64, 32, 10)
    with torch.no_grad():
        model[0].weight[:] = model[0].weight[:1].clone()
        model[0].bias.zero_()
        model[2].weight[:] = model[2].weight[:, :1].clone()
    found = look(training(model), "bad-initialisation").one()
    assert found.where == "0.weight"
    assert "copies of each other" in found.summary


def test_a_zero_convolution_behind_a_rectifier_is_found() -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 10))
    nn.init.zeros_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    found = look(training(model, data=digit_images()), "bad-initialisation").one()
    assert found.where == "2.weight"


def test_weights_from_rand_and_from_randn_are_a_matter_of_scale() -> None:
    positive = look(training(fill(mlp(64, 64, 10), nn.init.uniform_)), "bad-initialisation").one()
    assert positive.severity is Severity.WARNING
    assert "positive" in positive.summary
    wide = look(training(fill(mlp(64, 64, 64, 10), nn.init.normal_)), "bad-initialisation").one()
    assert wide.severity is Severity.WARNING
    assert "std 1" in wide.summary


def test_weights_that_are_far_too_small_in_every_layer_are_found() -> None:
    model = fill(mlp(64, 64, 64, 10), lambda w: nn.init.normal_(w, std=1e-4))
    assert look(training(model), "bad-initialisation").one().severity is Severity.WARNING


def test_a_warm_up_that_starts_at_rate_zero_does_not_look_like_symmetry() -> None:
    model = last_zero(nn.Sequential(nn.Linear(64, 32), Branch(32), nn.Linear(32, 10)))
    subject = training(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0))
    assert not look(subject, "bad-initialisation").findings


@pytest.mark.parametrize(("gain", "word"), [(2.2, "grows"), (0.45, "fades")])
def test_a_signal_that_compounds_is_found_with_its_direction(gain: float, word: str) -> None:
    model = fill(mlp(64, *[64] * 12, 10), lambda w: nn.init.normal_(w, std=gain * math.sqrt(2 / w.shape[1])))
    found = look(training(model), *STARTS).one()
    assert found.name == "signal-grows-or-fades"
    assert word in found.summary


@pytest.mark.parametrize(
    ("model", "word", "where"),
    [(lambda: Beside(10, gated=True, skip=False), "fades", "one.9"), (lambda: Beside(16, False, True, gain=1.5), "grows", "15")],
)
def test_layers_beside_the_main_way_do_not_hide_what_it_does(model, word: str, where: str) -> None:
    found = look(training(model()), *STARTS).one()
    assert found.name == "signal-grows-or-fades"
    assert word in found.summary
    assert found.where is not None
    assert found.where.endswith(where)


def test_growth_that_a_norm_takes_back_is_measured_by_the_wider_limit() -> None:
    loud = Beside(16, gated=False, skip=True, gain=1.2)
    assert look(training(loud), "signal-grows-or-fades").findings
    loud.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    assert not look(training(loud), "signal-grows-or-fades").findings


def test_sigmoid_layers_whose_gradients_vanish_keep_their_signal() -> None:
    assert not look(training(mlp(64, *[32] * 8, 10, activation=nn.Sigmoid)), *STARTS).findings


def test_a_dead_layer_is_found_behind_functional_and_shared_rectifiers() -> None:
    class Functional(nn.Module):
        def __init__(self, shared: bool) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(64, 48), nn.Linear(48, 48), nn.Linear(48, 10)])
            nn.init.constant_(self.layers[1].bias, -4.0)
            self.rectify = nn.ReLU() if shared else torch.relu

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers[:-1]:
                x = self.rectify(layer(x))
            return self.layers[-1](x)

    for shared in (True, False):
        found = look(training(Functional(shared)), "dead-units").one()
        assert "All 48 units" in found.summary


def test_few_samples_are_not_enough_to_call_a_unit_dead() -> None:
    model = mlp(64, 32, 10)
    nn.init.constant_(model[0].bias, -5.0)
    x, y = (a[:20] for a in digit_images())
    seen = look(training(model, data=(x.reshape(-1, 64), y)), "dead-units")
    assert not seen.findings
    assert "20 samples" in seen.not_examined["dead-units"]


def test_units_that_are_off_for_half_of_the_inputs_are_natural() -> None:
    model = mlp(64, 256, 256, 10)
    with torch.no_grad():
        model[0].bias[:100] = -5.0  # 39 % dead: sad, but more than half is alive
    assert not look(training(model), "dead-units").findings


OFF = {
    "hard shrinkage": nn.Hardshrink(3.0),
    "soft shrinkage": nn.Softshrink(3.0),
    "threshold": nn.Threshold(3.0, 0.0),
    "threshold with a floor": nn.Threshold(3.0, -1.0),
    "shrinkage as a function": lambda h: nn.functional.hardshrink(h, 3.0),
}


@pytest.mark.parametrize("name", OFF)
def test_units_that_no_threshold_lets_through_are_dead_whatever_the_activation(name: str) -> None:
    model = Made(lambda m, x: m.head(m.off(m.body(x))), body=nn.Linear(64, 48), head=nn.Linear(48, 10))
    model.off = OFF[name]
    found = look(training(model), "dead-units").one()
    assert f"All 48 units of {found.where} are {'-1' if 'floor' in name else 'zero'}" in found.summary
    assert "threshold" in found.fix
