"""The NumPy adapter tells failures in plain words, finds where NaN is born, and leaves no trace."""

import random
import sys
import threading
from typing import Any

import numpy as np
import pytest

from sleuth import Subject, examine
from sleuth.adapters import adapter_for
from sleuth.adapters.numpy import ADAPTER
from sleuth.core.observation import Failure, Origin
from sleuth.core.subject import Parts
from tests.kits.numpy_kit import NumpyKit
from tests.kits.numpy_layers import Layer
from tests.material import digits

KIT = NumpyKit()
X, Y = digits()
BATCH = Parts(X[:32], Y[:32], (X[:32], Y[:32]))


def failure(model: Any, loss: Any = None, batch: Parts = BATCH) -> Failure:
    with ADAPTER.bench(Subject(model, None, loss or KIT.loss("cross-entropy"))) as bench:
        (found,) = [o for o in bench.observe(batch, 0) if isinstance(o, Failure)]
    return found


def test_a_matrix_of_the_wrong_height_is_told_with_its_layer_and_line() -> None:
    model = KIT.sequential(KIT.linear(64, 32), KIT.activation("relu"), KIT.linear(30, 10))
    found = failure(model)
    assert (found.phase, found.kind, found.layer) == ("forward", "shape", "layers.2")
    assert (found.expected, found.got) == ("30 features", "x of shape (32, 32)")
    assert found.advice is not None
    assert "32 high instead of 30" in found.advice
    assert found.location is not None
    assert found.location.text == "out = x @ self.weight"


def test_shapes_that_do_not_broadcast_are_told() -> None:
    found = failure(KIT.mlp(64, 10), lambda output, target: float(((output - target) ** 2).mean()))
    assert (found.phase, found.kind) == ("loss", "shape")
    assert (found.expected, found.got) == ("shapes that fit (32,10)", "(32,)")


def test_a_reshape_that_does_not_fit_is_told() -> None:
    found = failure(KIT.sequential(KIT.layer("reshape", 32, 7), KIT.linear(7, 10)))
    assert (found.kind, found.layer, found.got) == ("shape", "layers.0", "2048 values")


def test_an_index_beyond_the_table_is_told() -> None:
    words = np.full((4, 3), 20)
    found = failure(
        KIT.sequential(KIT.layer("embedding", 20, 4), KIT.layer("flatten"), KIT.linear(12, 2)), None, Parts(words, Y[:4], None)
    )
    assert (found.kind, found.layer, found.expected, found.got) == ("index", "layers.0", "indices 0 to 19", "index 20")


def test_floats_as_indices_are_told() -> None:
    words = np.zeros((4, 3), np.float32)
    found = failure(KIT.sequential(KIT.layer("embedding", 20, 4)), None, Parts(words, Y[:4], None))
    assert (found.kind, found.expected) == ("dtype", "integers")


def test_a_loss_per_sample_is_told() -> None:
    found = failure(KIT.mlp(64, 10), lambda output, target: -output[np.arange(32), target])
    assert (found.phase, found.kind, found.expected) == ("loss", "value", "one number")


class Log(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.log(x)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad


def origin(model: Any, loss: Any = None) -> Origin | None:
    with ADAPTER.bench(Subject(model, None, loss or KIT.loss("cross-entropy"))) as bench:
        return ADAPTER.origin(bench, BATCH)


def test_the_operation_that_makes_nan_is_found() -> None:
    found = origin(KIT.sequential(KIT.linear(64, 16), Log(), KIT.linear(16, 10)))
    assert found is not None
    assert (found.operation, found.layer) == ("log", "layers.1")
    assert found.nans > 0
    assert found.location is not None
    assert found.location.text == "return np.log(x)"


def test_the_loss_that_makes_nan_is_found() -> None:
    found = origin(KIT.mlp(64, 10), lambda output, target: float(np.sqrt(output).mean()))
    assert found is not None
    assert (found.operation, found.layer) == ("sqrt", None)


def test_a_harmless_overflow_is_not_told() -> None:
    class Gate(Layer):
        def forward(self, x: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-1000 * x))

    assert origin(KIT.sequential(KIT.linear(64, 10), Gate())) is None


def subject(**changes: Any) -> Subject:
    model = KIT.sequential(
        KIT.linear(64, 32), KIT.layer("batchnorm", 32), KIT.activation("relu"), KIT.layer("dropout", 0.1), KIT.linear(32, 10)
    )
    for name, value in changes.items():
        setattr(model, name, value)
    return Subject(model, KIT.loader(X, Y), KIT.loss("cross-entropy"), KIT.optimiser(model, "adam", lr=1e-3))


def state(given: Subject) -> list[Any]:
    model, optimiser = given.model, given.optimizer
    layers = [[v.copy() if isinstance(v, np.ndarray) else v for v in vars(layer).values()] for layer in model.layers]
    return [
        [sorted(vars(layer)) for layer in model.layers],
        layers,
        [id(array) for _, array in model.parameters()],
        [id(array) for _, array in optimiser.params],
        optimiser.steps,
        optimiser.lr,
        {k: v.copy() for k, v in optimiser.mean.items()},
        given.train.rng.bit_generator.state,
        random.getstate(),
        np.random.get_state(),
        sys.getprofile(),
        np.geterr(),
    ]


@pytest.mark.parametrize("changes", [{}, {"lock": threading.Lock()}], ids=["copied", "not copied"])
def test_nothing_is_changed_by_an_examination(changes: dict[str, Any]) -> None:
    given = subject(**changes)
    before = state(given)
    report = examine(given, progress=False)
    np.testing.assert_equal(state(given), before)
    assert any("cannot be copied" in note for note in report.notes) is bool(changes)


def test_parameters_that_are_views_of_one_vector_are_not_torn_apart() -> None:
    class Flat:
        def __init__(self) -> None:
            self.vector = np.random.default_rng(0).normal(0, 0.1, 64 * 10 + 10).astype(np.float32)

        def parameters(self) -> Any:
            return [("W", self.vector[:640].reshape(64, 10)), ("b", self.vector[640:])]

        def forward(self, x: np.ndarray) -> np.ndarray:
            self.x = x
            (_, weight), (_, bias) = self.parameters()
            return x @ weight + bias

        def backward(self, grad: np.ndarray) -> Any:
            return [self.x.T @ grad, grad.sum(0)]

    given = Subject(Flat(), (X, Y), KIT.loss("cross-entropy"), 0.5)
    before = given.model.vector.copy()
    with ADAPTER.bench(given) as bench:
        losses = [bench.step(BATCH) for _ in range(20)]
        assert losses[-1] < losses[0] - 0.3
        assert bench.note is not None
    assert np.array_equal(given.model.vector, before)


def test_layers_are_recognised_by_name_and_shape() -> None:
    model = KIT.sequential(KIT.layer("conv2d", 1, 4, 3), KIT.activation("tanh"), KIT.layer("flatten"), KIT.linear(144, 10))
    architecture = ADAPTER.architecture(Subject(model, None))
    assert [x.family for x in architecture.layers] == ["conv", "activation", "flatten", "linear"]
    assert architecture.layers[0].settings | {"in": 1, "out": 4, "kernel": (3, 3)} == architecture.layers[0].settings
    assert {p.layer: p.family for p in architecture.parameters} == {"layers.0": "conv", "layers.3": "linear"}


def test_a_layer_marked_as_frozen_is_not_trainable() -> None:
    model = KIT.mlp(64, 16, 10)
    model.layers[0].frozen = True
    with ADAPTER.bench(Subject(model, None)) as bench:
        assert bench.paths() == ("layers.2.weight", "layers.2.bias")


def test_objects_of_frameworks_are_not_claimed() -> None:
    torch = pytest.importorskip("torch")
    assert not ADAPTER.claims(torch.nn.Linear(2, 2))
    assert adapter_for(torch.nn.Linear(2, 2)).name == "torch"
    assert adapter_for(KIT.mlp(2, 2)).name == "numpy"


def test_weights_that_the_optimiser_does_not_hold_are_marked() -> None:
    model = KIT.mlp(64, 16, 10)
    optimiser = KIT.optimiser(model)
    model.layers[0].weight = model.layers[0].weight.copy()
    found = {p.path: p.optimised for p in ADAPTER.architecture(Subject(model, None, optimizer=optimiser)).parameters}
    assert [path for path, held in found.items() if not held] == ["layers.0.weight"]
    assert ADAPTER.settings(Subject(model, None, optimizer=optimiser)).foreign_parameters == 1
