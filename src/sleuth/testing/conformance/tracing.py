"""Looking at one step op by op."""

import numpy as np

from sleuth.core.adapter import Adapter, Traces
from sleuth.testing.conformance.rule import benched, rule
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
    with benched(adapter, kit) as (bench, batch):
        last = [p for p in bench.paths() if len(bench.parameter(p).shape) == 2][-1]
        bench.write(last, np.full(bench.parameter(last).shape, 3e38))
        found = adapter.origin(bench, batch)  # type: ignore[attr-defined]
        assert found is not None
        assert found.nans + found.infs > 0
        assert found.layer is not None
        assert last.startswith(found.layer)
