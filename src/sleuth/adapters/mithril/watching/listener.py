"""Hears a loop around evaluate(): each call tells the weights it was given, and those of the next call tell the step."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.function_kind import FunctionKind
from sleuth.adapters.common.manual_loop.learning_rate import find_rate
from sleuth.adapters.common.manual_loop.listener import ManualLoopListener, Put, Say
from sleuth.adapters.common.manual_loop.notes import Notes
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.graph import Graph
from sleuth.adapters.mithril.key_roles import wire
from sleuth.adapters.mithril.watching.full_look import look_inside
from sleuth.core.contract.guard import Guard
from sleuth.core.observation.calls import CallKind

# So many entries of each array are compared to see whether it changed.
PRINTED = 64
Arrays = Mapping[str, Any]


class MithrilListener(ManualLoopListener):
    def __init__(self, physical: Any, optimiser: Any, put: Put, say: Say, *, pace: Pace, guard: Guard) -> None:
        super().__init__(put, say, pace=pace, guard=guard)
        self._graph = Graph(physical)
        self._wiring = wire(self._graph, None)
        self._is_numpy = physical.backend.backend_type == "numpy"  # others' arrays are not waited for, but at looks
        self._rate = find_rate(None, optimiser)
        self._prints: list[Any] = []
        self._data: Arrays | None = None
        self._loss: Any = None
        self.params: Arrays = {}
        self.updates_heard = False  # of the optimiser

    def plain(self, thing: Any) -> Any:
        return arrays.values(thing) if arrays.is_array(thing) else thing

    @contained
    def evaluate(self, params: Arrays, data: Arrays, wanted: Any) -> None:
        """evaluate() is called; `wanted`: its output_gradients, False where it is asked for none."""
        if self.calls.backwards and not self.updates_heard and self._has_changed(params):
            self._step_ended(params)
        self.loop_functions.look_from_inside()
        same = self._data is not None and all(a is b for a, b in zip(self._data.values(), data.values(), strict=False))
        if wanted is False or not same:
            self.calls.forward(True, next(iter(data.values()), None))
            self.notes.forward()
        self._data = dict(data)

    @contained
    def evaluated(self, params: Arrays, data: Arrays, wanted: Any, returned: Any) -> None:
        self.fell = None
        if wanted is False:
            return
        outputs, gradients = returned[0], returned[1]
        if self._wiring.loss is None and not self.backwards:
            self._find_loss(outputs)
        self.note_backward(self._scale(outputs, wanted))
        notes, key = self.notes, self._wiring.loss
        self._loss = None if key is None else outputs.get(key)
        if self._loss is not None and (self._is_numpy or notes.looked):
            notes.losses[-1].append((0, number(self._loss)))
        self.params, self._prints, self._data = params, self._printed(params), None
        if self._is_numpy:
            self._sums.backward({k: g for k, g in gradients.items() if isinstance(g, np.ndarray)})
        if notes.looked:
            self._look(params, data, gradients)
        if not self.updates_heard:
            self._before_write(gradients)

    def _look(self, params: Arrays, data: Arrays, gradients: Arrays) -> None:
        own = {k: v for k, v in params.items() if arrays.is_array(v) and arrays.is_float(v)}
        kept = {k: g for k, g in gradients.items() if k in own and arrays.is_array(g)}
        self.notes.gradients = {k: np.array(arrays.values(g)) for k, g in kept.items()}
        self.notes.before = {k: np.array(arrays.values(v)) for k, v in own.items()}
        self.notes.inside.append(look_inside(self._graph, self._wiring, {**params, **data}, self.steps, self.note_lost))

    def _find_loss(self, outputs: Arrays) -> None:
        """A single output of one number is the loss; compiled without shapes the model does not know that of itself."""
        (name, value), *others = outputs.items()
        if not others and np.size(arrays.values(value)) == 1:
            self._wiring = wire(self._graph, name)

    def _scale(self, outputs: Arrays, wanted: Any) -> float | None:
        """By how much what was asked for is the gradient of the loss."""
        if self._wiring.loss is not None:
            given = wanted.get(self._wiring.loss) if isinstance(wanted, Mapping) else None
            return 1.0 if given is None else number(given) if np.size(given) == 1 else None
        told = self.notes.heard[-1].gradient if self.notes.heard else None
        given = next(iter(wanted.values()), None) if isinstance(wanted, Mapping) else None
        if told is None or given is None or np.shape(given) != told.shape or not np.any(told):
            return None
        ratio = float((arrays.values(given) * told).sum() / (told * told).sum())
        return ratio if np.allclose(arrays.values(given), ratio * told, rtol=1e-4) else None

    @contained
    def update(self, gradients: Arrays | None) -> None:
        """The optimiser is about to step."""
        self._before_write(gradients)

    def _before_write(self, gradients: Arrays | None) -> None:
        notes = self.notes
        if gradients is not None and self._is_numpy:
            found = {k: g for k, g in gradients.items() if isinstance(g, np.ndarray)}
            self.sum_up(found, added=False)
            if notes.looked and self.updates_heard:
                notes.gradients = {k: np.array(v) for k, v in found.items() if k in notes.before}
        self.before_write(notes.loss())

    @contained
    def updated(self, returned: Any) -> None:
        """The optimiser has stepped."""
        candidates = returned if isinstance(returned, tuple) else (returned,)
        fresh = next((tree for tree in candidates if self._is_weights(tree)), self.params)
        self.meet(CallKind.STEP)
        if self.calls.backwards:
            self._step_ended(fresh)

    def _is_weights(self, tree: Any) -> bool:
        known = isinstance(tree, Mapping) and bool(tree) and set(tree) <= set(self.params)
        return known and all(map(arrays.is_array, tree.values()))

    def _printed(self, params: Arrays) -> list[Any]:
        """Arrays of NumPy are written into; those of other backends are made anew."""
        own = [params[k] for k in self._graph.parameters if k in params]
        if not self._is_numpy:
            return [id(a) for a in own]
        return [v for a in own for v in np.asarray(a).reshape(-1)[:: max(1, np.size(a) // PRINTED)].tolist()]

    def _has_changed(self, params: Arrays) -> bool:
        return self._printed(params) != self._prints

    def end_last_step(self) -> None:
        if self.calls.backwards and not self.updates_heard and (self.steps or self._has_changed(self.params)):
            self._step_ended(self.params if self._has_changed(self.params) else {})

    def _step_ended(self, after: Arrays) -> None:
        def copied() -> dict[str, np.ndarray]:
            return {k: np.array(arrays.values(after[k])) for k in self.notes.before if k in after}

        kind = CallKind.STEP_ON_USED_GRADIENT if self._used else CallKind.STEP
        rate = self._rate.get() if self._rate is not None else self.rate_in_loop()
        self.end_step(kind, copied, lr=rate, late_loss=self._loss)
        self._loss = None
        self.notes = Notes(looked=self.looks_at(self.steps))

    def broke(self) -> None:
        self.fell = FunctionKind.FORWARD


def number(value: Any) -> float:
    plain = arrays.values(value)
    return float(plain.reshape(-1)[0]) if np.size(plain) == 1 else float("nan")
