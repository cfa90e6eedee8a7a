"""One forward and loss of a bench, listened to."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.common.loss_values import family_of_name
from sleuth.adapters.common.manual_loop.loss_function import one_number
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.describing import loss_name
from sleuth.adapters.mithril.failure import explain
from sleuth.adapters.mithril.graph_walk import Walk
from sleuth.adapters.mithril.key_roles import feed
from sleuth.adapters.mithril.observing import activity, inner_loss_call, loss_call, producer_facts
from sleuth.adapters.mithril.tracing import find_origin
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Absent, Observation, Role
from sleuth.core.subject import Parts

if TYPE_CHECKING:
    from sleuth.adapters.mithril.bench import MithrilBench


class Held:
    """What a step of the user's own is given as its model: it can be called, and has evaluate()."""

    def __init__(self, bench: "MithrilBench") -> None:
        self._bench = bench
        self.outputs: list[Any] = []

    @property
    def params(self) -> dict[str, Any]:
        return self._bench.params

    def __call__(self, inputs: Any) -> Any:
        self.outputs.append(self._bench.answer(inputs))
        return self.outputs[-1]

    def evaluate(self, params: Any = None, data: Any = None, **options: Any) -> Any:
        return self._bench.given.physical.evaluate(self.params if params is None else params, data, **options)


def look(bench: "MithrilBench", batch: Parts, step: int) -> Iterator[Observation]:
    wiring, graph = bench.wiring, bench.given.graph
    try:
        done = bench.walk(feed(wiring, batch))
    except Unsupported as error:
        yield Absent(Role.ACTIVATION, str(error))
        return
    except Exception as error:  # the batch does not go with the keys of the model
        yield explain(error, "forward")
        return
    yield from activity(graph, wiring, done, step)
    answered = all(key in done.values for key in wiring.outputs)
    if done.node is not None and done.error is not None:
        if answered and wiring.loss is not None:
            yield from _inner_calls(bench, done, None, failed=True)
        yield explain(done.error, "loss" if answered else "forward", done.node, done.values)
        return
    with np.errstate(all="ignore"):
        yield from _judged(bench, done, batch)
        origin = find_origin(graph, done, step)
    if origin is not None:
        yield origin


def _judged(bench: "MithrilBench", done: Walk, batch: Parts) -> Iterator[Observation]:
    """The loss, whether it stands in the model or outside."""
    if bench.wiring.loss is None:
        if bench.judge is not None:
            yield from _outer_call(bench, done, batch)
        return
    key = bench.given.graph.outputs[bench.wiring.loss]
    if key in done.values:
        yield from _inner_calls(bench, done, done.values[key])
    else:
        missing = next((k for k in bench.wiring.targets if k not in done.values), key)
        yield explain(KeyError(missing), "loss")


def _inner_calls(bench: "MithrilBench", done: Walk, value: Any, *, failed: bool = False) -> Iterator[Observation]:
    for node in bench.given.graph.loss_nodes(str(bench.wiring.loss)):
        yield inner_loss_call(bench.given.graph, node, done, value, failed=failed)


def _outer_call(bench: "MithrilBench", done: Walk, batch: Parts) -> Iterator[Observation]:
    assert bench.judge is not None
    name = loss_name(bench.given.graph, bench.subject) or "loss"
    key = bench.wiring.outputs[0]
    output, facts = done.values[key], producer_facts(bench.given.graph, key, done)
    try:
        value = bench.judge.value(batch)
    except Exception as error:
        yield loss_call(name, family_of_name(name), None, None, output, batch.target, facts=facts, failed=True)
        yield explain(error, "loss")
        return
    family, reduction = _recognised(bench, output, batch.target, value)
    yield loss_call(name, family, reduction, value, output, batch.target, facts=facts)
    try:
        one_number(arrays.values(value))
    except ValueError as error:
        yield explain(error, "loss")


def _recognised(bench: "MithrilBench", output: Any, target: Any, value: Any) -> tuple[str, str | None]:
    if not (arrays.is_array(output) and arrays.is_array(target)):
        return "other", None

    def at(other: np.ndarray) -> np.ndarray:
        return arrays.values(bench.asked(arrays.like(other, output), target))

    return recognise(arrays.values(output), arrays.values(target), arrays.values(value), at)
