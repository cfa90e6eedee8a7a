"""What the bench computes is right, and what it observes is what happened."""

import numpy as np

from sleuth.core.contract.adapter import Adapter, Steps
from sleuth.core.observation import Failure, Frame, LossCall, Role, Units
from sleuth.core.subject import Subject, take_apart
from sleuth.testing.conformance.rule import (
    CLASSES,
    FEATURES,
    HIDDEN,
    SAMPLES,
    benched,
    data,
    first_batch,
    rule,
    same,
    subject,
    weights,
)
from sleuth.testing.kit import CannotBuild, Kit

# A central difference in float64 with a step of 1e-5 is good to about 1e-9; a wrong gradient is off by far more.
NUMERIC = 1e-6
NUDGE = 1e-5


@rule(Steps)
def in_double_precision_the_same_is_computed(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        before = weights(adapter, bench)
        double = bench.double()
        assert double.paths() == bench.paths()
        assert all(adapter.dtype(double.parameter(p)) == "float64" for p in double.paths())
        assert abs(double.loss(batch) - bench.loss(batch)) <= 1e-5 * abs(bench.loss(batch))
        for path in double.paths():
            double.write(path, np.zeros(before[path].shape))
        assert same(weights(adapter, bench), before), "the double is a copy"


@rule(Steps)
def gradients_agree_with_numerical_ones(adapter: Adapter, kit: Kit) -> None:
    rng = np.random.default_rng(11)
    with benched(adapter, kit) as (bench, batch):
        double = bench.double()
        double.set_training(False)
        found = double.gradients(batch)
        assert found.by_path.keys() == set(double.paths())
        for path, gradient in found.by_path.items():
            centre = np.array(adapter.values(double.parameter(path)))
            direction = rng.normal(size=centre.shape)
            losses = []
            for sign in (1, -1):
                double.write(path, centre + sign * NUDGE * direction)
                losses.append(double.loss(batch))
            double.write(path, centre)
            analytic = float((adapter.values(gradient) * direction).sum())
            numeric = (losses[0] - losses[1]) / (2 * NUDGE)
            assert abs(analytic - numeric) <= NUMERIC * max(abs(numeric), 1e-3), f"{path}: {analytic} against {numeric}"


@rule(Steps)
def one_pass_is_observed(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        seen = list(bench.observe(batch, 5))
        frame = next(o for o in seen if isinstance(o, Frame) and o.role is Role.ACTIVATION)
        assert frame.step == 5
        assert len(frame.paths) >= 3, "two linear layers and the activation between them"
        assert all(s.count in (SAMPLES * HIDDEN, SAMPLES * CLASSES) for s in frame.statistics().values())
        units = next(o for o in seen if isinstance(o, Units))
        assert (units.activation, units.samples, units.nonzero.shape) == ("relu", SAMPLES, (HIDDEN,))
        (call,) = [o for o in seen if isinstance(o, LossCall)]
        assert call.family == "cross-entropy"
        assert call.value is not None
        assert abs(call.value - bench.loss(batch)) <= 1e-5
        output, target = call.argument("output"), call.argument("target")
        assert output is not None
        assert target is not None
        assert (output.facts.shape, target.facts.shape) == ((SAMPLES, CLASSES), (SAMPLES,))


@rule(Steps)
def a_failing_forward_is_explained(adapter: Adapter, kit: Kit) -> None:
    given = subject(kit)
    narrow = kit.loader(data()[0][:, :5], data()[1], batch_size=SAMPLES)
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        failures = [o for o in bench.observe(take_apart(next(iter(narrow))), 0) if isinstance(o, Failure)]
        assert [f.phase for f in failures] == ["forward"]
        assert (failures[0].kind, bool(failures[0].layer)) == ("shape", True)
        told = bench.explain_failure(ValueError("something else"), "backward")
        assert isinstance(told, Failure)
        assert (told.phase, told.error, told.message) == ("backward", "ValueError", "something else")


@rule(Steps)
def modes_are_switched(adapter: Adapter, kit: Kit) -> None:
    try:
        model = kit.sequential(kit.linear(FEATURES, HIDDEN), kit.layer("dropout", 0.5), kit.linear(HIDDEN, CLASSES))
    except CannotBuild:
        return
    given = Subject(model, kit.loader(*data(), batch_size=SAMPLES), kit.loss("cross-entropy"), kit.optimiser(model))
    inputs = first_batch(given).inputs
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        for training in (True, False):
            bench.set_training(training)
            one, other = (np.array(adapter.values(bench.forward(inputs))) for _ in range(2))
            assert np.array_equal(one, other) is not training
