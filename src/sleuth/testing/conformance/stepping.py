"""Training on the bench: exact to the last bit, and away from the user's objects."""

import random
from dataclasses import replace
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter, Compares, Describes, Steps, Substitutes
from sleuth.core.subject import Usage
from sleuth.testing.conformance.rule import benched, first_batch, rule, same, subject, weights
from sleuth.testing.kit import Kit


@rule(Steps)
def the_bench_has_the_parameters_of_the_description(adapter: Adapter, kit: Kit) -> None:
    given = subject(kit)
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        if isinstance(adapter, Describes):
            assert bench.paths() == tuple(p.path for p in adapter.architecture(given).parameters)
        for path in bench.paths():
            values = np.array(adapter.values(bench.parameter(path)))
            bench.write(path, values + 1)
            assert np.array_equal(adapter.values(bench.parameter(path)), values + 1)


@rule(Steps)
def a_snapshot_brings_everything_back(adapter: Adapter, kit: Kit) -> None:
    """To the last bit: weights, the optimiser's moments and random numbers, so that the same steps follow."""
    with benched(adapter, kit, optimiser="adam", lr=0.01) as (bench, batch):
        bench.step(batch)
        snapshot, before = bench.snapshot(), weights(adapter, bench)
        drawn = (random.random(), np.random.random())
        losses = [bench.step(batch) for _ in range(3)]
        after = weights(adapter, bench)
        bench.restore(snapshot)
        assert same(weights(adapter, bench), before)
        assert (random.random(), np.random.random()) == drawn
        assert [bench.step(batch) for _ in range(3)] == losses
        assert same(weights(adapter, bench), after)
        bench.restore(snapshot)
        assert same(weights(adapter, bench), before), "a snapshot serves more than once"


@rule(Steps)
def training_on_the_bench_leaves_the_users_objects_alone(adapter: Adapter, kit: Kit) -> None:
    given = subject(kit, optimiser="adam")
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        before = weights(adapter, bench)
        for _ in range(3):
            bench.step(first_batch(given))
        assert not same(weights(adapter, bench), before)
        with adapter.bench(given) as other:  # type: ignore[attr-defined]
            assert same(weights(adapter, other), before) or bench.note, "without a copy the report must say so"
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        assert same(weights(adapter, bench), before)


@rule(Steps)
def steps_change_weights_and_lower_the_loss(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit, lr=0.5) as (bench, batch):
        before = weights(adapter, bench)
        start = bench.loss(batch)
        losses = [bench.step(batch) for _ in range(60)]
        assert abs(losses[0] - start) <= 1e-5 * abs(start), "step returns the loss before it"
        assert bench.loss(batch) < 0.8 * start
        assert all(not np.array_equal(before[p], v) for p, v in weights(adapter, bench).items())


@rule(Steps)
def looking_changes_no_weight(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        before = weights(adapter, bench)
        bench.forward(batch.inputs)
        bench.loss(batch)
        bench.gradients(batch)
        list(bench.observe(batch, 0))
        assert same(weights(adapter, bench), before)


@rule(Steps)
def outputs_are_heard_inside_a_step_of_the_users_own(adapter: Adapter, kit: Kit) -> None:
    given = subject(kit)
    loss: Any = given.loss

    def step(model: Any, batch: Any) -> Any:
        call = model if callable(model) else model.forward
        return loss(call(batch[0]), batch[1])

    stepped = replace(given, loss=None, step=step)
    for one in (given, stepped):
        with adapter.bench(one) as bench:  # type: ignore[attr-defined]
            batch = first_batch(one)
            heard = bench.outputs(batch)
            assert len(heard) == 1
            assert np.array_equal(adapter.values(heard[0]), adapter.values(bench.forward(batch.inputs)))
            usage = bench.usage(batch)
            assert usage is None or usage == Usage(("0",), ("1",))


@rule(Steps)
def gradients_and_apply_together_are_a_step(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit, optimiser="adam") as (bench, batch):
        start = bench.snapshot()
        bench.step(batch)
        stepped = weights(adapter, bench)
        bench.restore(start)
        bench.gradients(batch)
        bench.apply(batch)
        assert same(weights(adapter, bench), stepped)


@rule(Steps)
def the_rate_can_be_set(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit, lr=0.1) as (bench, batch):
        assert bench.lr == 0.1
        start, before = bench.snapshot(), weights(adapter, bench)
        moves = []
        for rate in (0.0, 0.01, 0.02):
            bench.restore(start)
            bench.set_lr(rate)
            assert bench.lr is not None
            assert abs(bench.lr - rate) < 1e-9
            bench.step(batch)
            moves.append(np.concatenate([(v - before[p]).ravel() for p, v in weights(adapter, bench).items()]))
        assert not moves[0].any()
        assert np.allclose(moves[2], 2 * moves[1], rtol=1e-2, atol=1e-6)
        bench.restore(start)
        assert bench.lr == 0.1, "the rate is part of the snapshot"


@rule(Steps)
def weight_decay_can_be_taken_away(adapter: Adapter, kit: Kit) -> None:
    """With decay, weights are drawn to zero by lr·decay·w; without, they are not; a snapshot brings it back."""
    with benched(adapter, kit, lr=0.1) as (bench, _):
        assert not bench.weight_decay, "none was given"
    with benched(adapter, kit, lr=0.1, weight_decay=0.5) as (bench, batch):
        assert bench.weight_decay == 0.5
        start, before = bench.snapshot(), weights(adapter, bench)
        bench.step(batch)
        decayed = weights(adapter, bench)
        bench.restore(start)
        bench.scale_weight_decay(0.0)
        assert bench.weight_decay == 0
        bench.step(batch)
        for path, values in weights(adapter, bench).items():
            assert np.allclose(values - decayed[path], 0.1 * 0.5 * before[path], atol=1e-5)
        bench.restore(start)
        assert bench.weight_decay == 0.5, "the decay is part of the snapshot"


@rule(Substitutes)
def other_answers_reach_the_loss_and_leave_no_trace(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        loss, answers = bench.loss(batch), []

        def spread(output: Any) -> Any:
            answers.append(adapter.values(output))
            return adapter.like(10 * adapter.values(output), output)

        assert adapter.loss_with(bench, batch, lambda output: output) == loss  # type: ignore[attr-defined]
        assert adapter.loss_with(bench, batch, spread) != loss  # type: ignore[attr-defined]
        assert np.array_equal(answers[0], adapter.values(bench.forward(batch.inputs)))
        assert bench.loss(batch) == loss


@rule(Compares)
def what_a_loss_function_is_given_is_told(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        (call,) = adapter.compared(bench, batch)  # type: ignore[attr-defined]
        assert np.array_equal(adapter.values(call.target), adapter.values(batch.target))
        assert np.allclose(adapter.values(call.output), adapter.values(bench.forward(batch.inputs)))
