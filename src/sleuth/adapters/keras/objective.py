"""The loss of a bench: the one that was given, the compiled one, or a `compute_loss` of the model's own."""

from collections.abc import Callable, Iterator
from typing import Any

from sleuth.adapters.keras.loss_calls import heard_calls, met_at, one_of_each, own_call
from sleuth.adapters.keras.losses import as_function, has_own_loss, loss_name
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.sides import Meeting, Side, without_warnings
from sleuth.adapters.keras.source_lines import compiled_with
from sleuth.core.observation import LossCall
from sleuth.core.subject import Parts, Subject


class Objective:
    def __init__(self, model: Any, given: Any, subject: Subject) -> None:
        self.given = given
        self._model = model
        self._function = None if given is None else as_function(given)
        self._name = loss_name(subject) or ("compute_loss" if has_own_loss(model) else "loss")
        self._has_step = subject.step is not None

    @property
    def _is_there(self) -> bool:
        compiled = getattr(self._model, "compiled", False) and self._model._compile_loss is not None
        return self._function is not None or compiled or has_own_loss(self._model)

    def of(self, output: Any, penalties: list[Any], batch: Parts, *, training: bool) -> Any:
        """None: there is no loss."""
        if not self._is_there:
            return None
        if self._function is not None:
            return sum(penalties, start=self._function(output, batch.target))
        self._model._losses_override = penalties
        try:
            return self._model._compute_loss(x=batch.inputs, y=batch.target, y_pred=output, training=training)
        finally:
            self._model._losses_override = []

    def calls(self, hearing: Hearing, output: Any, value: Any, batch: Parts, side: Side, *, training: bool) -> Iterator[LossCall]:
        """Of Keras' losses, where some were heard; else of what somebody has written instead."""
        known = list(heard_calls(hearing, value, compiled_with(self._model, "loss")))
        yield from known
        pair = one_of_each(hearing.outputs[-1] if hearing.outputs else output, batch.target)
        if known or value is None or pair is None:
            return

        def ask(output: Any, target: Any = batch.target) -> Any:
            return self.of(output, [], Parts(batch.inputs, target, batch.raw), training=training)

        asked = None if self._has_step or not self._is_there else ask
        with without_warnings():
            call = own_call(self._name, *pair, value, hearing, asked)
            met = None if asked is None else _meeting(side, asked, *pair)
        yield call if met is None else met_at(call, met)


def _meeting(side: Side, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
    try:
        return side.meeting(compute, output, target)
    except Exception:  # it has run once, but need not be able to run under a listener
        return None
