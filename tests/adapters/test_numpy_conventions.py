"""Models written by hand agree on little: every way of writing them that section and reader expect is understood."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sleuth import Subject, examine
from sleuth.adapters.numpy import ADAPTER
from sleuth.adapters.numpy.gradients import WrongGradients
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.observation import Frame, LossCall, Role, Units
from sleuth.core.subject import Parts
from tests.material import digits

X, Y = digits()
BATCH = Parts(X[:32], Y[:32], (X[:32], Y[:32]))
ROWS = np.arange(32)


def relu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cross_entropy(scores: np.ndarray, target: np.ndarray) -> float:
    p = softmax(scores)
    return float(-np.log(p[np.arange(len(target)), target]).mean())


class Net:
    """Weights on the model itself, activations as functions, backward(grad) in the order of parameters()."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.W1 = (rng.standard_normal((64, 32)) / 8).astype(np.float32)
        self.b1 = np.zeros(32, np.float32)
        self.W2 = (rng.standard_normal((32, 10)) / 6).astype(np.float32)
        self.b2 = np.zeros(10, np.float32)

    def parameters(self) -> Any:
        return [("W1", self.W1), ("b1", self.b1), ("W2", self.W2), ("b2", self.b2)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        self.h = relu(x @ self.W1 + self.b1)
        return self.h @ self.W2 + self.b2

    def backward(self, grad: np.ndarray) -> Any:
        inner = (grad @ self.W2.T) * (self.h > 0)
        return [self.x.T @ inner, inner.sum(0), self.h.T @ grad, grad.sum(0)]


class Section(Net):
    """As in the book: forward_loss, backward() without an argument, update(grads, lr); arrays without names."""

    def parameters(self) -> Any:
        return [self.W1, self.b1, self.W2, self.b2]

    def forward_loss(self, x: np.ndarray, y: np.ndarray) -> float:
        self.p, self.y = softmax(self.forward(x)), y
        return float(-np.log(self.p[np.arange(len(y)), y]).mean())

    def backward(self) -> Any:
        grad = self.p.copy()
        grad[np.arange(len(self.y)), self.y] -= 1
        return super().backward(grad / len(self.y))

    def update(self, grads: Any, lr: float = 0.5) -> None:
        self.W1, self.b1, self.W2, self.b2 = (p - lr * g for p, g in zip(self.parameters(), grads, strict=True))


class WithTrainStep(Net):
    lr = 0.5

    def train_step(self, batch: Any) -> float:
        x, y = batch
        grad = softmax(self.forward(x))
        loss = float(-np.log(grad[np.arange(len(y)), y]).mean())
        grad[np.arange(len(y)), y] -= 1
        for (_, p), g in zip(self.parameters(), self.backward(grad / len(y)), strict=True):
            p -= self.lr * g
        return loss


class AsDict(Net):
    def parameters(self) -> Any:
        return dict(super().parameters())

    def backward(self, grad: np.ndarray) -> Any:
        return dict(zip(("W1", "b1", "W2", "b2"), super().backward(grad), strict=True))


class Boxed:
    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.grad: np.ndarray | None = None


class WithBoxes(Net):
    """Parameters are objects with .data and .grad; backward returns the gradient by the input."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes = [Boxed(p) for _, p in super().parameters()]

    def parameters(self) -> Any:
        return self.boxes

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.W1, self.b1, self.W2, self.b2 = (box.data for box in self.boxes)
        return super().forward(x)

    def backward(self, grad: np.ndarray) -> Any:
        for box, g in zip(self.boxes, super().backward(grad), strict=True):
            box.grad = g
        return grad


class TakesTheTarget(Net):
    def compute_loss(self, output: np.ndarray, y: np.ndarray) -> float:
        self.p = softmax(output)
        return float(-np.log(self.p[np.arange(len(y)), y]).mean())

    def backward(self, y: np.ndarray) -> Any:
        grad = self.p.copy()
        grad[np.arange(len(y)), y] -= 1
        return super().backward(grad / len(y))


class Pair:
    def __call__(self, scores: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
        return cross_entropy(scores, target), self.gradient(scores, target)

    def gradient(self, scores: np.ndarray, target: np.ndarray) -> np.ndarray:
        grad = softmax(scores)
        grad[np.arange(len(target)), target] -= 1
        return grad / len(target)


class Method(Pair):
    def __call__(self, scores: np.ndarray, target: np.ndarray) -> float:  # type: ignore[override]
        return cross_entropy(scores, target)


class Stateful:
    """loss.forward(output, target), then loss.backward()."""

    def forward(self, scores: np.ndarray, target: np.ndarray) -> float:
        self.at = scores, target
        return cross_entropy(scores, target)

    def backward(self) -> np.ndarray:
        return Pair().gradient(*self.at)


WAYS: dict[str, Callable[[], Subject]] = {
    "loss as a function": lambda: Subject(Net(), (X, Y), cross_entropy, 0.5),
    "loss with its gradient": lambda: Subject(Net(), (X, Y), Pair(), 0.5),
    "loss with a gradient method": lambda: Subject(Net(), (X, Y), Method(), 0.5),
    "loss with forward and backward": lambda: Subject(Net(), (X, Y), Stateful(), 0.5),  # type: ignore[arg-type]
    "the book's": lambda: Subject(Section(), (X, Y)),
    "train_step": lambda: Subject(WithTrainStep(), (X, Y), Pair()),
    "dicts": lambda: Subject(AsDict(), (X, Y), Pair(), 0.5),
    "boxes": lambda: Subject(WithBoxes(), (X, Y), Pair(), 0.5),
    "backward takes the target": lambda: Subject(TakesTheTarget(), (X, Y), optimizer=0.5),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Subject:
    return WAYS[request.param]()


def test_every_way_of_writing_gives_the_same_loss_gradients_and_step(way: Subject) -> None:
    with ADAPTER.bench(Subject(Net(), None, Pair(), 0.5)) as plain, ADAPTER.bench(way) as bench:
        expected, found = plain.gradients(BATCH), bench.gradients(BATCH)
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        for one, other in zip(expected.by_path.values(), found.by_path.values(), strict=True):
            assert np.allclose(one, other, atol=1e-5)
        assert bench.lr == 0.5
        plain.step(BATCH)
        bench.step(BATCH)
        for one, other in zip(plain.paths(), bench.paths(), strict=True):
            assert np.allclose(plain.parameter(one), bench.parameter(other), atol=1e-5)


def test_every_way_of_writing_can_be_restored_and_doubled(way: Subject) -> None:
    with ADAPTER.bench(way) as bench:
        start = bench.snapshot()
        before = [bench.parameter(p).copy() for p in bench.paths()]
        losses = [bench.step(BATCH) for _ in range(3)]
        bench.restore(start)
        assert all(np.array_equal(a, bench.parameter(p)) for a, p in zip(before, bench.paths(), strict=True))
        assert [bench.step(BATCH) for _ in range(3)] == losses
        double = bench.double()
        assert {str(double.parameter(p).dtype) for p in double.paths()} == {"float64"}
        assert double.loss(BATCH) == pytest.approx(bench.loss(BATCH), rel=1e-5)


def test_every_way_of_writing_is_healthy_and_left_as_it_was(way: Subject) -> None:
    before = {name: np.array(value) for name, value in vars(way.model).items() if isinstance(value, np.ndarray)}
    attributes = set(vars(way.model))
    report = examine(way, progress=False)
    assert not report.findings, report.to_text()
    assert set(vars(way.model)) == attributes
    assert all(np.array_equal(vars(way.model)[name], value) for name, value in before.items())


def test_unnamed_arrays_get_the_names_of_their_attributes() -> None:
    with ADAPTER.bench(Subject(Section(), None)) as bench:
        assert bench.paths() == ("W1", "b1", "W2", "b2")


def test_activations_written_as_functions_are_heard() -> None:
    with ADAPTER.bench(Subject(Section(), None)) as bench:
        seen = list(bench.observe(BATCH, 0))
    frame = next(o for o in seen if isinstance(o, Frame) and o.role is Role.ACTIVATION)
    assert frame.paths == ("relu", "softmax")
    assert [(u.path, u.activation, u.nonzero.shape) for u in seen if isinstance(u, Units)] == [("relu", "relu", (32,))]


LOSSES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float], np.ndarray]] = {
    "scores and classes": ("cross-entropy", cross_entropy, Y[:32]),
    "log-probabilities": ("nll", lambda o, t: -o[ROWS, t].mean(), Y[:32]),
    "scores and one-hot rows": ("cross-entropy", lambda o, t: -(np.log(softmax(o)) * t).sum(1).mean(), np.eye(10)[Y[:32]]),
    # -log p[y] of probabilities is no loss that does a softmax of its own: a softmax before it is right.
    "probabilities": ("other", lambda o, t: -np.log(np.abs(o[ROWS, t]) + 1e-9).mean(), Y[:32]),
    "squares": ("mse", lambda o, t: ((o - t) ** 2).mean(), np.eye(10)[Y[:32]]),
    "half the squares": ("other", lambda o, t: ((o - t) ** 2).mean() / 2, np.eye(10)[Y[:32]]),
    "absolute values": ("l1", lambda o, t: np.abs(o - t).mean(), np.eye(10)[Y[:32]]),
    "yes or no": ("bce-logits", lambda o, t: (np.logaddexp(0, o) - o * t).mean(), np.eye(10)[Y[:32]]),
    "something else": ("other", lambda o, t: float(np.square(o).sum()), Y[:32]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_known_by_its_values_not_by_its_name(name: str) -> None:
    family, loss, target = LOSSES[name]
    with ADAPTER.bench(Subject(Net(), None, loss)) as bench:
        calls = [o for o in bench.observe(Parts(X[:32], target, None), 0) if isinstance(o, LossCall)]
    assert [c.family for c in calls] == [family]


def test_a_target_with_an_axis_too_few_is_seen_to_blow_up() -> None:
    def squares(output: np.ndarray, target: np.ndarray) -> float:
        return float(((output - target) ** 2).mean())

    class One(Net):
        def forward(self, x: np.ndarray) -> np.ndarray:
            return super().forward(x)[:, :1]

    with ADAPTER.bench(Subject(One(), None, squares)) as bench:
        (call,) = [o for o in bench.observe(Parts(X[:32], Y[:32].astype(np.float32), None), 0) if isinstance(o, LossCall)]
    assert (call.family, call.broadcast) == ("mse", (32, 32))
    assert call.location is not None
    assert call.location.text.startswith("def squares")


def test_a_model_without_backward_says_so_and_the_rest_is_examined() -> None:
    class Forward(Net):
        backward = None  # type: ignore[assignment]

    report = examine(Forward(), (X, Y), loss=Pair(), progress=False)
    assert report.not_examined["vanishing-gradients"] == "the model has no backward()"
    assert "input-not-finite" in report.clear


def test_a_model_without_a_loss_says_so() -> None:
    report = examine(Net(), (X, Y), progress=False)
    assert report.not_examined["vanishing-gradients"] == "no loss was given, and the model has no compute_loss(x, y)"


def test_a_bias_whose_gradient_is_averaged_twice_is_named_first() -> None:
    class Averaged(Net):
        def backward(self, grad: np.ndarray) -> Any:
            first, bias, *others = super().backward(grad)
            return [first, bias / len(grad), *others]

    report = examine(Averaged(), (X, Y), loss=Pair(), optimizer=0.5, progress=False)
    assert [c.finding.name for c in report.culprits] == ["gradient-wrong"], report.to_text()
    assert report.culprits[0].finding.where == "b1"


def test_a_gradient_too_many_is_told() -> None:
    class TooMany(Net):
        def backward(self, grad: np.ndarray) -> Any:
            return [*super().backward(grad), grad]

    with (
        ADAPTER.bench(Subject(TooMany(), None, Pair())) as bench,
        pytest.raises(WrongGradients, match="5 gradients for the 4 arrays"),
    ):
        bench.gradients(BATCH)


def test_a_gradient_of_the_wrong_shape_is_told() -> None:
    class Turned(Net):
        def backward(self, grad: np.ndarray) -> Any:
            first, *others = super().backward(grad)
            return [first.T, *others]

    with (
        ADAPTER.bench(Subject(Turned(), None, Pair())) as bench,
        pytest.raises(WrongGradients, match=r"\(32, 64\) for W1"),
    ):
        bench.gradients(BATCH)


def test_copies_instead_of_live_arrays_are_told() -> None:
    class Copies(Net):
        def parameters(self) -> Any:
            return [(name, array.copy()) for name, array in super().parameters()]

    with ADAPTER.bench(Subject(Copies(), None, Pair(), 0.5)) as bench, pytest.raises(Unsupported, match="copies"):
        bench.step(BATCH)


def test_numbers_instead_of_arrays_are_refused() -> None:
    class Numbers(Net):
        def parameters(self) -> Any:
            return [1.0, 2.0]

    with pytest.raises(UnusableInput, match="give NumPy arrays"):
        examine(Numbers(), (X, Y), loss=Pair(), progress=False)
