"""Values inside a Mithril model while a bench runs it, and its graph: both stand in the flat graph."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sleuth.adapters.mithril import arrays, describing, kinds, tracing
from sleuth.adapters.mithril.bench import MithrilBench
from sleuth.adapters.mithril.given_model import resolve
from sleuth.adapters.mithril.graph_walk import Walk, walk
from sleuth.adapters.mithril.inspecting import visited
from sleuth.adapters.mithril.key_roles import feed_inputs, wire
from sleuth.core.contract.adapter import Bench, LayerValues, Routes
from sleuth.core.contract.inspection import Node, Route
from sleuth.core.contract.workload import Hear, Heard, Wanted
from sleuth.core.errors import Unsupported, UnusableInput
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject


class MithrilLayerValues(LayerValues, Routes):
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        return {}  # evaluate() returns them, and keeps none

    @contextmanager
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> Iterator[None]:
        """Each pass is computed once more, function by function. Gradients inside evaluate() does not hand out."""
        if not isinstance(bench, MithrilBench):
            raise Unsupported("this bench does not hold a Mithril model")

        def tell(done: Walk) -> None:
            for group in bench.given.graph.groups:
                array: Any = done.values.get(group.output)
                if arrays.is_array(array) and len(array.shape) and wanted(group.path, True):
                    axis = 1 if len(array.shape) >= 4 else len(array.shape) - 1
                    activation = kinds.ACTIVATIONS.get(group.kind, "")
                    value(Heard(group.path, group.kind, activation, axis), array)

        with bench.heard_by(tell):
            yield

    def route(self, model: Any, inputs: Any) -> Route:
        with random_preserved((model,)):
            given = resolve(model, Subject(model, None))
        wiring = wire(given.graph, None)
        done = walk(given.graph, {**given.params, **given.state, **feed_inputs(wiring, inputs)}, wiring.outputs)
        if done.error is not None:
            raise UnusableInput(f"the forward pass fails: {done.error}")
        settings = {layer.path: layer.settings for layer in describing.describe(given).layers}
        told = tracing.flow(given.graph, wiring.outputs, wiring.inputs, done, settings)
        went = visited(given, wiring, done)
        places = {visit.path: i for i, visit in enumerate(went.visits)}
        nodes = tuple(Node(o.name, o.family, o.shape, places.get(o.layer, 0), o.sources) for o in told.operations)
        return Route(nodes, went, told.outputs)
