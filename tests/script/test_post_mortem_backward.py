"""A backward that raises: the tensor and the line in the user's own words, watched or not."""

import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from tests.script.crashing import X, Y, finding, report_of_watch, report_without

BOTH = pytest.mark.parametrize("report_of", [report_of_watch, report_without])


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.a(x)))


def plain(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    for _ in range(3):
        optimiser.zero_grad()
        loss = fn.cross_entropy(model(X), Y)
        loss.backward()
        optimiser.step()


def told(report, line: str, *words: str, name: str = "backward-fails"):
    """The finding stands at that line and says these words in its summary or its fix."""
    found = finding(report, name)
    assert found.location is not None, report.to_text()
    assert found.location.text == line, report.to_text()
    for word in words:
        assert word in f"{found.summary} {found.fix}", report.to_text()
    return found


# A tensor that was changed in place.


class Shifted(Two):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.sigmoid(self.a(x))
        h -= 0.5
        return self.b(h)


class Gated(nn.Module):
    """Many harmless changes in place, and one that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 16), nn.ReLU(inplace=True))
        self.gate, self.head = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        gate = torch.sigmoid(self.gate(h))
        out = h * gate
        gate[:, 0] = 1.0
        return self.head(out)


class Masked(Two):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = torch.softmax(self.a(x), 1)
        share.masked_fill_(share < 0.01, 0)
        return self.b(share)


class BuiltIn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(16, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


@BOTH
@pytest.mark.parametrize(
    ("kind", "line", "words"),
    [
        (Shifted, "h -= 0.5", ("h = h - 0.5",)),
        (Gated, "gate[:, 0] = 1.0", ("gate = gate.clone()",)),
        (Masked, "share.masked_fill_(share < 0.01, 0)", ("masked_fill(…) instead of masked_fill_(…)",)),
        (BuiltIn, "return self.body(x)", ("body.2", "inplace=True")),
    ],
)
def test_the_line_in_the_model_that_changed_a_tensor_is_named(report_of, kind, line, words) -> None:
    told(report_of(plain, kind()), line, *words)


@BOTH
def test_the_line_in_the_loop_that_changed_a_tensor_is_named(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(2):
            chances = model(X).sigmoid()
            chances.clamp_(1e-3, 1 - 1e-3)
            loss = -chances.log().mean()
            loss.backward()
            optimiser.step()

    told(report_of(loop, Two()), "chances.clamp_(1e-3, 1 - 1e-3)", "chances", "clamp(…) instead of clamp_(…)")


@BOTH
def test_a_weight_that_the_optimiser_wrote_between_forward_and_backward_is_named(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(2):
            out = model(X)
            first, second = fn.cross_entropy(out, Y), out.pow(2).mean()
            first.backward(retain_graph=True)
            optimiser.step()
            second.backward()

    told(report_of(loop, Two()), "optimiser.step()", "b.weight", "before optimiser.step()")


# A graph that was used up.


@BOTH
def test_what_was_computed_once_before_the_loop_is_named(report_of) -> None:
    def loop(model, optimiser):
        penalty = model.a.weight.pow(2).sum()
        for _ in range(3):
            loss = fn.cross_entropy(model(X), Y) + 0.1 * penalty
            loss.backward()

    told(report_of(loop, Two()), "penalty = model.a.weight.pow(2).sum()", "penalty", "inside the loop")


@BOTH
def test_two_losses_of_one_output_are_told_with_the_line_of_the_first_backward(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(3):
            optimiser.zero_grad()
            out = model(X)
            first, second = fn.cross_entropy(out, Y), out.pow(2).mean()
            first.backward()
            second.backward()
            optimiser.step()

    told(report_of(loop, Two()), "second.backward()", "finds out,", "retain_graph=True", "out.detach()")


@BOTH
def test_the_same_loss_twice_is_told(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(3):
            loss = fn.cross_entropy(model(X), Y)
            loss.backward()
            loss.backward()

    told(report_of(loop, Two()), "loss.backward()", "once a step", "already")


class Kept(Two):
    def __init__(self) -> None:
        super().__init__()
        self.anchor = torch.tanh(self.a(torch.ones(1, 8)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.a(x)) + self.anchor)


@BOTH
def test_what_the_model_computed_when_it_was_built_is_named(report_of) -> None:
    told(report_of(plain, Kept()), "self.anchor = torch.tanh(self.a(torch.ones(1, 8)))", "anchor", "detach()")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, state=None):
        out, state = self.rnn(x[:, None], state)
        return self.head(out[:, -1]), state


def carried(model, optimiser):
    state = None
    for _ in range(3):
        optimiser.zero_grad()
        out, state = model(X, state)
        loss = fn.cross_entropy(out, Y)
        loss.backward()
        optimiser.step()


def test_a_state_that_goes_from_step_to_step_is_named_without_a_watch() -> None:
    told(report_without(carried, Recurrent()), "out, state = model(X, state)", "state", "part.detach() for part in state")


def test_a_state_that_goes_from_step_to_step_has_a_check_of_its_own_in_a_watch() -> None:
    report = report_of_watch(carried, Recurrent())
    assert report.culprits[0].finding.name == "hidden-state-not-detached"
    assert [s.name for s in report.culprits[0].symptoms] == ["backward-fails"]


def test_a_running_total_is_named() -> None:
    def loop(model, optimiser):
        total = 0
        for _ in range(3):
            total = total + fn.cross_entropy(model(X), Y)
            total.backward()

    told(report_without(loop, Two()), "total = total + fn.cross_entropy(model(X), Y)", "total", "loss.item()")


def test_a_list_that_is_summed_up_is_named_with_the_line_that_fills_it() -> None:
    def loop(model, optimiser):
        losses = []
        for _ in range(3):
            losses.append(fn.cross_entropy(model(X), Y))
            loss = sum(losses)
            loss.backward()

    told(report_without(loop, Two()), "losses.append(fn.cross_entropy(model(X), Y))", "losses.clear()")


# A loss without a graph.


class Cut(Two):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.a(x))
        return self.b(h).detach()


class Decorated(Two):
    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.a(x)))


@BOTH
@pytest.mark.parametrize(
    ("kind", "line", "word"),
    [(Cut, "return self.b(h).detach()", "detach"), (Decorated, "return self.b(torch.tanh(self.a(x)))", "no_grad")],
)
def test_the_line_in_the_model_that_cut_the_graph_is_named(report_of, kind, line, word) -> None:
    told(report_of(plain, kind()), line, word)


@BOTH
def test_a_block_without_gradients_is_named(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(2):
            with torch.no_grad():
                out = model(X)
            loss = fn.cross_entropy(out, Y)
            loss.backward()

    told(report_of(loop, Two()), "with torch.no_grad():", "out", "out of that block")


@BOTH
def test_the_line_in_the_loop_that_cut_the_graph_is_named(report_of) -> None:
    def loop(model, optimiser):
        for _ in range(2):
            out = model(X)
            picked = out.argmax(1).float()
            loss = fn.mse_loss(picked, Y.float())
            loss.backward()

    told(report_of(loop, Two()), "picked = out.argmax(1).float()", "picked", "argmax()")


@BOTH
def test_a_loss_that_was_detached_in_place_is_named(report_of) -> None:
    def loop(model, optimiser):
        loss = fn.cross_entropy(model(X), Y)
        loss.detach_()
        loss.backward()

    told(report_of(loop, Two()), "loss.detach_()", "in place")


@BOTH
def test_a_function_that_returns_a_plain_number_is_named(report_of) -> None:
    def objective(out, target):
        return torch.tensor(fn.cross_entropy(out, target).item())

    def loop(model, optimiser):
        for _ in range(2):
            loss = objective(model(X), Y)
            loss.backward()

    told(report_of(loop, Two()), "return torch.tensor(fn.cross_entropy(out, target).item())", "objective", "item()")


@BOTH
def test_a_model_that_is_frozen_as_a_whole_is_told(report_of) -> None:
    model = Two().requires_grad_(False)

    def loop(model, optimiser):
        out = model(X)
        fn.cross_entropy(out, Y).backward()

    told(report_of(loop, model), "fn.cross_entropy(out, Y).backward()", "all frozen", "requires_grad_(True)")


def test_gradients_that_are_switched_off_for_the_whole_script_are_told() -> None:
    def loop(model, optimiser):
        torch.set_grad_enabled(False)
        plain(model, optimiser)

    try:
        report = report_without(loop, Two())
    finally:
        torch.set_grad_enabled(True)
    told(report, "torch.set_grad_enabled(False)", "switched off")


# A loss of several numbers.


@BOTH
def test_a_loss_that_was_not_averaged_is_told_with_its_shape(report_of) -> None:
    def loop(model, optimiser):
        loss = fn.cross_entropy(model(X), Y, reduction="none")
        loss.backward()

    told(report_of(loop, Two()), "loss.backward()", "(64,)", "reduction='none'")


@BOTH
def test_an_output_that_was_taken_for_the_loss_is_told(report_of) -> None:
    def loop(model, optimiser):
        out = model(X)
        out.backward()

    told(report_of(loop, Two()), "out.backward()", "(64, 4)", "compute a loss from it")


def test_the_users_model_random_state_and_graph_are_left_alone() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), Masked())
    model[3].a, model[3].b = nn.Linear(16, 16), nn.Linear(16, 4)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    try:
        plain(model, optimiser)
    except RuntimeError as error:
        from sleuth.adapters.torch import ADAPTER

        before = {name: t.clone() for name, t in model.state_dict().items()}
        state = torch.get_rng_state()
        ADAPTER.explain(error)
        assert torch.equal(state, torch.get_rng_state())
        assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
