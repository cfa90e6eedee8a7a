"""Looking at one step op by op."""

import numpy as np

from sleuth.core.contract.adapter import Adapter, Describes, Traces
from sleuth.core.reading.flow import chain_to, users
from sleuth.testing.conformance.rule import CLASSES, FEATURES, HIDDEN, benched, rule, same, subject, weights
from sleuth.testing.kit import Kit


@rule(Traces)
def a_whole_model_is_connected_and_finite(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        connection = adapter.connection(bench, batch)  # type: ignore[attr-defined]
        assert connection.parameters == len(bench.paths())
        assert not connection.without_gradient
        assert not connection.cuts
        assert adapter.origin(bench, batch) is None  # type: ignore[attr-defined]


@rule(Traces)
def the_birth_of_a_nan_is_found(adapter: Adapter, kit: Kit) -> None:
    """Weights too large for float32 make Inf in the second layer, not before."""
    given = subject(kit)
    described = adapter.architecture(given).parameters if isinstance(adapter, Describes) else ()
    with benched(adapter, kit) as (bench, batch):
        last = [p for p in bench.paths() if len(bench.parameter(p).shape) == 2][-1]
        bench.write(last, np.full(bench.parameter(last).shape, 3e38))
        found = adapter.origin(bench, batch)  # type: ignore[attr-defined]
        assert found is not None
        assert found.nans + found.infs > 0
        assert found.layer is not None
        # Parameters are mostly named after their layer; where they are not, the description says whose they are.
        assert last.startswith(found.layer) or found.layer in {p.layer for p in described if p.path == last}


@rule(Traces)
def a_forward_pass_is_followed_from_the_input_to_the_output(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        flow = adapter.flow(bench, batch)  # type: ignore[attr-defined]
        assert [o.family for o in flow.operations] == ["input", "linear", "activation", "linear"]
        assert [o.sources for o in flow.operations] == [(), (0,), (1,), (2,)]
        first, last = flow.operations[1], flow.operations[3]
        assert [(o.settings["in"], o.settings["out"]) for o in (first, last)] == [(FEATURES, HIDDEN), (HIDDEN, CLASSES)]
        assert [set(o.parameters) for o in (first, last)] == [set(bench.paths()[:2]), set(bench.paths()[2:])]
        assert flow.outputs == (3,)
        assert last.leaves
        assert last.settings["axis"] == 1
        chain = chain_to(flow, 3, ("activation",), users(flow))
        assert chain is not None
        assert chain.first is first


@rule(Traces)
def following_a_pass_changes_no_weight(adapter: Adapter, kit: Kit) -> None:
    with benched(adapter, kit) as (bench, batch):
        before = weights(adapter, bench)
        adapter.flow(bench, batch)  # type: ignore[attr-defined]
        assert same(weights(adapter, bench), before)
