"""Mithril models as users hand them over: with the loss inside, beside or as a function, compiled or not."""

import copy
from typing import Any

import numpy as np
import pytest

import sleuth
from sleuth import Subject
from sleuth.adapters.mithril import ADAPTER
from sleuth.adapters.mithril.bench import MithrilBench
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.observation import Failure, Frame, LossCall, Origin, Role
from sleuth.core.subject import Parts, take_apart
from sleuth.instruments.summary import summary
from tests.kits.mithril_kit import BACKENDS, SGD, MithrilKit, ml, models

BACKEND = BACKENDS["float32"]
X = np.random.default_rng(1).normal(size=(48, 6)).astype(np.float32)
Y = (X @ np.random.default_rng(2).normal(size=(6, 3))).argmax(1)
BATCH = take_apart((X, Y))


def network() -> Any:
    model = models.Model()
    model |= models.Linear(5).connect(input="input")
    model += models.Relu()
    model += models.Linear(3).connect(output="output")
    model.expose_keys("output")
    return model


def trained(model: Any = None) -> Any:
    whole = models.TrainModel(network() if model is None else model)
    loss = models.CrossEntropy(input_type="logits")
    whole.add_loss(loss, input="output", target="target", reduce_steps=[models.Mean()])
    return whole


def compiled(model: Any, **options: Any) -> Any:
    return ml.compile(model, BACKEND, shapes={"input": [None, 6]}, jit=False, **options)


def drawn(physical: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = {key: array.shape for key, array in physical.randomize_params().items()}
    return {key: (0.4 * rng.normal(size=shape)).astype(np.float32) for key, shape in shapes.items()}


def pair(model: Any, **options: Any) -> tuple[Any, dict[str, np.ndarray]]:
    physical = compiled(model, **options)
    return physical, drawn(physical)


def observed(subject: Subject, batch: Parts = BATCH) -> list[Any]:
    with ADAPTER.bench(subject) as bench:
        return list(bench.observe(batch, 0))


def test_models_are_known_by_what_they_can_do() -> None:
    physical, params = pair(network())
    for model in (physical, (physical, params), network(), (network(), BACKEND), (network(), BACKEND, params)):
        assert ADAPTER.claims(model)
    for other in (BACKEND, params, (params, physical), models.Linear, "model", np.zeros(3), MithrilKit()):
        assert not ADAPTER.claims(other)


def test_layers_bear_the_names_that_the_librarys_own_summary_gives_them() -> None:
    for model, loss in ((network(), None), (trained(), None)):
        architecture = ADAPTER.architecture(Subject(pair(model), (X, Y), loss))
        assert [layer.path for layer in architecture.layers] == ["Linear_0", "Relu", "Linear_1"]
        keys = [(p.path, p.layer) for p in architecture.parameters]
        assert keys == [("weight_0", "Linear_0"), ("bias_0", "Linear_0"), ("weight_1", "Linear_1"), ("bias_1", "Linear_1")]


def test_a_loss_inside_beside_and_as_a_function_have_the_same_gradients() -> None:
    physical, params = pair(network())
    beside = models.CrossEntropy(input_type="logits")

    def written(scores: np.ndarray, target: np.ndarray) -> float:
        top = scores - scores.max(1, keepdims=True)
        return float((np.log(np.exp(top).sum(1)) - top[np.arange(len(top)), target]).mean())

    found = []
    for model, loss in (
        (compiled(trained()), None),
        (compiled(trained()), "final_cost"),
        (physical, beside),
        (physical, written),
    ):
        with ADAPTER.bench(Subject((model, params), (X, Y), loss)) as bench:
            found.append(bench.gradients(BATCH))
    for other in found[1:]:
        assert other.loss == pytest.approx(found[0].loss, rel=1e-5)
        for key, gradient in found[0].by_path.items():
            assert np.allclose(gradient, other.by_path[key], atol=1e-5), key


def test_every_layers_values_are_seen_and_so_is_the_loss_inside() -> None:
    physical, params = pair(trained())
    seen = observed(Subject((physical, params), (X, Y)))
    frame = next(o for o in seen if isinstance(o, Frame) and o.role is Role.ACTIVATION)
    assert frame.paths == ("Linear_0", "Relu", "Linear_1")
    output = physical.evaluate(params, {"input": X, "target": Y})["output"]
    assert frame.statistics()["Linear_1"].mean == pytest.approx(float(output.mean()), rel=1e-5)
    (call,) = (o for o in seen if isinstance(o, LossCall))
    assert (call.name, call.family, call.reduction) == ("CrossEntropy", "cross-entropy", "mean")
    assert call.argument("output").facts.shape == (48, 3)  # type: ignore[union-attr]


def test_a_softmax_before_a_loss_over_scores_is_named_inside_a_train_model() -> None:
    model = models.Model()
    model |= models.Linear(3).connect(input="input")
    model += models.Softmax(axis=1).connect(output="output")
    model.expose_keys("output")
    report = sleuth.examine(pair(trained(model)), (X, Y), optimizer=0.1, select=["double-softmax"], progress=False)
    assert [c.finding.name for c in report.culprits] == ["double-softmax"]


def test_nothing_of_the_users_is_changed() -> None:
    physical, params = pair(trained())
    physical.evaluate(params, {"input": X, "target": Y})
    optimiser = SGD(lr=0.1, momentum=0.9)
    caches = {k: dict(v) for k, v in physical.flat_graph.cached_data.items() if isinstance(v, dict)}

    def state() -> tuple[Any, ...]:
        return params, vars(optimiser), BACKEND._seed_generator.bit_generator.state, np.random.get_state()[1].tolist()

    before = copy.deepcopy(state())
    subject = Subject((physical, params), (X, Y), None, optimiser)
    with ADAPTER.preserve(subject), ADAPTER.bench(subject) as bench:
        for _ in range(3):
            bench.step(take_apart((X[:7], Y[:7])))
        list(bench.observe(BATCH, 0))
    ADAPTER.architecture(Subject((network(), BACKEND), (X, Y)))
    after = state()
    assert all(np.array_equal(params[key], array) for key, array in before[0].items())
    assert after[1:] == before[1:]
    for key, content in caches.items():
        assert all(physical.flat_graph.cached_data[key][name] is value for name, value in content.items()), key


def test_a_shape_error_while_running_names_layer_and_keys() -> None:
    narrow = take_apart((X[:, :4], Y))
    (failure,) = (o for o in observed(Subject(pair(trained()), (X, Y)), narrow) if isinstance(o, Failure))
    assert (failure.phase, failure.kind, failure.layer) == ("forward", "shape", "Linear_0")
    assert "'input' (48, 4)" in str(failure.got)
    assert "'input' has 4 features and Linear_0 takes 6" in str(failure.advice)
    assert failure.location is None, "no line of the user's had to do with it"


def test_a_shape_error_of_the_compiler_is_told_with_its_keys() -> None:
    model = models.Model()
    model |= models.Linear(5).connect(input="input", weight="w")
    model.set_shapes(w=[5, 9])
    with pytest.raises(UnusableInput, match=r"'input' \[\?, 6\] has 6 features .* takes 9 \('w' \[5, 9\], transposed\)"):
        ADAPTER.architecture(Subject((model, BACKEND), (X, Y)))
    model = network()
    model.set_shapes(input=[None, 7])
    with pytest.raises(UnusableInput, match=r"'input' is declared as \[\?, 7\] and was given \[\?, 6\]"):
        ADAPTER.architecture(Subject((model, BACKEND), (X, Y)))


def test_a_target_that_a_batch_lacks_is_named() -> None:
    (failure,) = (o for o in observed(Subject(pair(trained()), X), take_apart(X)) if isinstance(o, Failure))
    assert (failure.phase, failure.kind) == ("loss", "key")
    assert "'target'" in str(failure.expected)


def test_a_logical_model_is_compiled_for_its_data_and_parameters_are_drawn_with_a_word() -> None:
    with ADAPTER.bench(Subject((network(), BACKEND), {"input": X, "target": Y}, models.CrossEntropy(), 0.1)) as bench:
        assert bench.parameter("weight_0").shape == (5, 6)
        assert "randomize_params" in str(bench.note)
        before = bench.loss(BATCH)
        for _ in range(30):
            bench.step(BATCH)
        assert bench.loss(BATCH) < before


def test_a_model_for_inference_has_no_gradients_and_says_so() -> None:
    physical = compiled(trained(), inference=True)
    with ADAPTER.bench(Subject((physical, drawn(physical)), (X, Y))) as bench:
        assert np.isfinite(bench.loss(BATCH))
        with pytest.raises(Unsupported, match="inference=True"):
            bench.gradients(BATCH)


def test_double_precision_is_not_rounded_by_the_compiled_code() -> None:
    with ADAPTER.bench(Subject(pair(trained()), (X, Y))) as bench:
        double = bench.double()
        assert isinstance(double, MithrilBench)
        weight = np.array(double.parameter("weight_1"))
        start = double.loss(BATCH)
        weight[0] += 1e-9  # of one class: all of them together would change no softmax
        double.write("weight_1", weight)
        assert 0 < abs(double.loss(BATCH) - start) < 1e-7


class Momentum:
    """In the form of optax: updates are given back, to be added."""

    def init(self, params: dict[str, Any]) -> dict[str, Any]:
        return {key: np.zeros_like(value) for key, value in params.items()}

    def update(self, gradients: dict[str, Any], state: dict[str, Any], params: dict[str, Any]) -> tuple[Any, Any]:
        state = {key: 0.9 * state[key] + gradient for key, gradient in gradients.items()}
        return {key: -0.05 * value for key, value in state.items()}, state


class InPlace:
    lr = 0.1

    def step(self, params: dict[str, Any], gradients: dict[str, Any]) -> None:
        for key, gradient in gradients.items():
            params[key] -= self.lr * gradient


@pytest.mark.parametrize("optimiser", [0.1, None, SGD(lr=0.1), Momentum(), InPlace()])
def test_optimisers_of_several_forms_train(optimiser: Any) -> None:
    subject = Subject(pair(trained()), (X, Y), None, optimiser)
    with ADAPTER.bench(subject) as bench:
        kept, start = bench.snapshot(), bench.loss(BATCH)
        losses = [bench.step(BATCH) for _ in range(20)]
        assert losses[-1] < start
        bench.restore(kept)
        assert [bench.step(BATCH) for _ in range(20)] == losses


def test_the_function_that_makes_inf_is_named_with_its_layer() -> None:
    physical, params = pair(network())
    params["weight_1"][...] = 3e38
    (origin,) = (o for o in observed(Subject((physical, params), (X, Y))) if isinstance(o, Origin))
    assert (origin.operation, origin.layer) == ("matrix_multiplication", "Linear_1")


def test_the_summary_has_shapes_and_parameters_of_every_layer() -> None:
    table = summary(pair(network()), (16, 6), progress=False)
    assert (table.parameters, table.flops) == (6 * 5 + 5 + 5 * 3 + 3, 2 * 16 * (6 * 5 + 5 * 3))
    assert [(row.path, row.outputs[0].shape) for row in table.rows] == [
        ("", (16, 3)),
        ("Linear_0", (16, 5)),
        ("Relu", (16, 5)),
        ("Linear_1", (16, 3)),
    ]
    assert summary(pair(network()), (16, 4), progress=False).failure.layer == "Linear_0"  # type: ignore[union-attr]
