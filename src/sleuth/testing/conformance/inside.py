"""What is heard inside a model equals what NumPy computes; what is lent and profiled is what is there."""

from itertools import repeat

import numpy as np

from sleuth.core.contract.adapter import Adapter, CheckpointState, LayerValues, Profiles
from sleuth.core.contract.workload import Heard
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Subject
from sleuth.testing.conformance.rule import (
    CLASSES,
    FEATURES,
    HIDDEN,
    SAMPLES,
    benched,
    close,
    data,
    first_batch,
    known_network,
    rule,
    same,
    subject,
    weights,
)
from sleuth.testing.kit import CannotBuild, Kit

WARM_UP, MEASURED = 1, 3


@rule(LayerValues)
def values_and_gradients_inside_are_those_of_numpy(adapter: Adapter, kit: Kit) -> None:
    network = known_network(kit)
    values: list[tuple[Heard, np.ndarray]] = []
    gradients: list[tuple[Heard, np.ndarray]] = []
    with adapter.bench(network.subject) as bench:  # type: ignore[attr-defined]
        bench.set_training(True)
        batch = first_batch(network.subject)
        before = weights(adapter, bench)
        with adapter.layer_values(  # type: ignore[attr-defined]
            bench,
            lambda path, usual: usual,
            lambda heard, array: values.append((heard, np.array(adapter.values(array)))),
            lambda heard, array: gradients.append((heard, np.array(adapter.values(array)))),
        ):
            bench.gradients(batch)
        assert same(weights(adapter, bench), before)
    (relu,) = [(heard, array) for heard, array in values if heard.activation == "relu"]
    assert close(relu[1], network.hidden)
    assert relu[0].unit_axis == 1
    assert any(close(array, network.scores) for _, array in values), "the last layer's output was not heard"
    back = [array for heard, array in gradients if heard.path == relu[0].path]
    # Hand-written code and compiled graphs may not pass gradients of inner values on; what is told must be right.
    assert all(close(array, network.back_to_hidden) for array in back)


@rule(LayerValues)
def only_what_is_wanted_is_heard(adapter: Adapter, kit: Kit) -> None:
    heard: list[str] = []
    with benched(adapter, kit) as (bench, batch):
        wanted = lambda path, usual: False  # noqa: E731
        with adapter.layer_values(bench, wanted, lambda at, _: heard.append(at.path)):  # type: ignore[attr-defined]
            bench.loss(batch)
    assert not heard


@rule(CheckpointState)
def running_statistics_are_lent_and_written(adapter: Adapter, kit: Kit) -> None:
    try:
        model = kit.sequential(kit.linear(FEATURES, HIDDEN), kit.layer("batchnorm", HIDDEN), kit.linear(HIDDEN, CLASSES))
    except CannotBuild:
        return
    given = Subject(model, kit.loader(*data(), batch_size=SAMPLES), kit.loss("cross-entropy"), kit.optimiser(model))
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        bench.set_training(True)
        before = {k: np.array(adapter.values(v)) for k, v in adapter.statistics(bench).items()}  # type: ignore[attr-defined]
        kept = {path: array for path, array in before.items() if array.shape == (HIDDEN,)}
        assert len(kept) == 2, "a running mean and a running variance"
        bench.step(first_batch(given))
        after = adapter.statistics(bench)  # type: ignore[attr-defined]
        assert all(not np.array_equal(adapter.values(after[path]), array) for path, array in kept.items())
        for path, array in kept.items():
            adapter.write_statistic(bench, path, array)  # type: ignore[attr-defined]
        again = adapter.statistics(bench)  # type: ignore[attr-defined]
        assert all(np.array_equal(adapter.values(again[path]), array) for path, array in kept.items())


@rule(Profiles)
def a_step_is_profiled(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        cost = adapter.cost(bench, repeat(batch), steps=MEASURED, warm_up=WARM_UP, tell=lambda text: None)  # type: ignore[attr-defined]
        held = sum(np.array(adapter.values(bench.parameter(path))).nbytes for path in bench.paths())
        assert len(cost.steps) == MEASURED
        assert all(phases.forward > 0 and phases.total > 0 for phases in cost.steps)
        assert cost.memory.parameters == held
        inner = [layer for layer in cost.layers if layer.path]
        # In a program that is compiled as a whole no layer has a time of its own.
        assert not inner or len(inner) >= 2, "two linear layers at the least"
        linear = [layer for layer in inner if layer.family == "linear"]
        assert sorted(layer.flops for layer in linear if layer.flops) in (
            [],
            sorted((2 * SAMPLES * FEATURES * HIDDEN, 2 * SAMPLES * HIDDEN * CLASSES)),
        )


@rule(Profiles)
def the_work_of_a_forward_pass_changes_nothing(adapter: Adapter, kit: Kit) -> None:
    given = subject(kit)
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        bench.set_training(True)
        before = weights(adapter, bench)
        try:
            work = adapter.work(bench, first_batch(given), repeats=2)  # type: ignore[attr-defined]
        except Unsupported:  # layers of a program that is compiled as a whole have no time of their own
            return
        assert same(weights(adapter, bench), before)
        assert sum(layer.forward for layer in work) > 0
