"""Values inside a Mithril model and its graph, against NumPy by hand; nothing of the user's is changed."""

import numpy as np
import pytest

import sleuth
from sleuth.adapters.mithril import ADAPTER
from sleuth.core.subject import Subject, take_apart
from tests.kits.mithril_kit import MithrilKit
from tests.material import digits

KIT = MithrilKit()
X, Y = (a[:16] for a in digits())


def test_values_inside_are_those_of_numpy() -> None:
    _, params = model = KIT.mlp(64, 8, 10)
    before = {key: array.tobytes() for key, array in params.items()}
    heard: dict[str, np.ndarray] = {}

    def keep(what: object, array: np.ndarray) -> None:
        heard[what.path] = array  # type: ignore[attr-defined]

    with (
        ADAPTER.bench(Subject(model, None, KIT.loss("cross-entropy"), 0.1)) as bench,
        ADAPTER.layer_values(bench, lambda path, leaf: True, keep),
    ):
        bench.gradients(take_apart((X, Y), None))
    first = X @ params["weight_0"].T + params["bias_0"]
    assert heard["Linear_0"] == pytest.approx(first, rel=1e-5, abs=1e-6)
    assert heard["Relu"] == pytest.approx(np.maximum(first, 0), rel=1e-5, abs=1e-6)
    assert {key: array.tobytes() for key, array in params.items()} == before


def test_the_graph_leads_from_layer_to_layer() -> None:
    told = ADAPTER.route(KIT.mlp(64, 8, 10), X)
    assert [node.name for node in told.nodes] == ["input", "Linear", "Relu", "Linear"]
    assert [node.sources for node in told.nodes] == [(), (0,), (1,), (2,)]
    assert told.nodes[-1].shape == (16, 10)


def test_instruments_speak_of_its_layers() -> None:
    model = KIT.mlp(64, 8, 10)
    assert "Relu" in str(sleuth.activations(model, (X, Y), loss=KIT.loss("cross-entropy")))
    assert "of 8 units" in str(sleuth.dead_units(model, (X, Y)))
    assert "Linear_1" in str(sleuth.graph(model, X))
