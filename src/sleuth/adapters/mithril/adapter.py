"""The Mithril adapter: each capability is filled in by the module of that name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sleuth.adapters.mithril import arrays, describing, tracing
from sleuth.adapters.mithril.bench import MithrilBench, open_bench
from sleuth.adapters.mithril.given_model import Given, is_model, resolve
from sleuth.adapters.mithril.inspecting import MithrilInspects
from sleuth.adapters.mithril.layer_values import MithrilLayerValues
from sleuth.adapters.mithril.watching.watching import MithrilWatching
from sleuth.core.contract.adapter import Adapter, Bench, Describes, Steps, Substitutes, Traces, Watches, Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Settings
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection, Flow


class MithrilAdapter(MithrilInspects, MithrilLayerValues, Adapter, Describes, Steps, Substitutes, Traces, Watches):
    name = "mithril"

    claims = staticmethod(is_model)
    is_array = staticmethod(arrays.is_array)
    values = staticmethod(arrays.values)
    like = staticmethod(arrays.like)
    dtype = staticmethod(arrays.dtype)
    device = staticmethod(arrays.device)
    measure = staticmethod(arrays.measure)

    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        return None

    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        return random_preserved((subject.train, subject.validation, subject.loss, subject.optimizer))

    def architecture(self, subject: Subject) -> Architecture:
        with self._given(subject) as given:
            return describing.describe(given, subject.loss)

    def settings(self, subject: Subject) -> Settings:
        with self._given(subject) as given:
            return describing.settings(given, subject)

    @contextmanager
    def bench(self, subject: Subject) -> Iterator[Bench]:
        with self._given(subject) as given, open_bench(given, subject) as bench:
            yield bench

    def connection(self, bench: Bench, batch: Parts) -> Connection:
        mine = _mine(bench)
        key = mine.wiring.loss
        goal = list(mine.wiring.outputs) if key is None else [mine.given.graph.outputs[key]]
        return tracing.connection(mine.given.graph, goal, mine.paths())

    def flow(self, bench: Bench, batch: Parts) -> Flow:
        mine = _mine(bench)
        done = mine.walked(batch.inputs)
        settings = {layer.path: layer.settings for layer in describing.describe(mine.given, mine.subject.loss).layers}
        return tracing.flow(mine.given.graph, mine.wiring.outputs, mine.wiring.inputs, done, settings)

    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        mine = _mine(bench)
        if mine.wiring.loss is not None:
            raise Unsupported("the loss is computed inside the model: other answers cannot be put to it")
        with mine.answers_changed(change):
            return mine.loss(batch)

    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        return MithrilWatching(model, optimisers, every=every, overhead=overhead, guard=guard)

    @contextmanager
    def _given(self, subject: Subject) -> Iterator[Given]:
        """Drawing parameters and compiling leave every random state as it was."""
        with random_preserved((subject.model, subject.train)):
            given = resolve(subject.model, subject)
        yield given


def _mine(bench: Bench) -> MithrilBench:
    if not isinstance(bench, MithrilBench):
        raise Unsupported("this bench does not hold a Mithril model")
    return bench
