"""One forward pass and loss as a pure function of arrays, whichever way the model is written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from sleuth.adapters.jax.forms import Form
from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.plain_form import Bound, takes
from sleuth.core.errors import Unsupported

NO_LOSS = "no loss was given: give loss=loss(output, target), or step=step(model, batch) that returns the loss"


class NotOneNumber(ValueError):
    """A loss that is not a single number."""


@dataclass
class Progress:
    """How far the user's code came before it raised."""

    phase: str = "forward"
    marks: Marks = field(default_factory=Marks)


class Program:
    def __init__(self, form: Form, loss: Callable[..., Any] | None, step: Callable[[Any, Any], Any] | None) -> None:
        self.form = form
        self.loss = loss
        self.step = step

    @property
    def sees_output(self) -> bool:
        """The loss is a function of output and target, so it can be asked at other points too."""
        return self.loss is not None and self.step is None and self.form.calls

    def given(self, batch: Any) -> Any:
        """What of a batch the function is given."""
        return batch.raw if self.step is not None else (batch.inputs, batch.target)

    def forward(self, params: Any, rest: Any, inputs: Any, training: bool, marks: Marks | None = None) -> tuple[Any, Any]:
        model = self.form.build(params, rest, training)
        output = self._call(model, inputs, rest, training, marks)
        return output, self.form.rest_of(model, rest)

    def evaluate(
        self, params: Any, rest: Any, given: Any, training: bool, marks: Marks | None = None, progress: Progress | None = None
    ) -> tuple[Any, Any, Any]:
        """(the loss, the output where it is known, what is kept for the next call)."""
        model = self.form.build(params, rest, training)
        progress = progress or Progress()
        output = None
        if self.step is not None:
            value = self._stepped(model, given, marks)
        elif self.loss is None:
            raise Unsupported(NO_LOSS)
        elif not self.form.calls:
            inputs, target = given
            value = self.loss(model, inputs, target) if takes(self.loss) >= 3 else self.loss(model, given)
        else:
            inputs, target = given
            output = self._call(model, inputs, rest, training, marks)
            progress.phase = "loss"
            value = self.loss(output, target)
        progress.phase = "loss"
        return one_number(value), output, self.form.rest_of(model, rest)

    def _call(self, model: Any, inputs: Any, rest: Any, training: bool, marks: Marks | None) -> Any:
        if marks is None:
            return self.form.call(model, inputs, rest, training)
        self.form.get_ready(model, inputs, rest)
        with marks.listening(self.form.modules(model)):
            output = self.form.call(model, inputs, rest, training)
        return marks.returned("", None, output)

    def _stepped(self, model: Any, given: Any, marks: Marks | None) -> Any:
        assert self.step is not None
        if marks is None:
            return self.step(model, given)
        if isinstance(model, Bound):
            model.heard = lambda output: marks.returned("", None, output)
        with marks.listening(self.form.modules(model)):
            return self.step(model, given)


def one_number(returned: Any) -> Any:
    """The loss itself: a function for `has_aux=True` returns more than that."""
    value = returned[0] if isinstance(returned, tuple) and returned else returned
    shape = getattr(value, "shape", None)
    if isinstance(value, int | float):
        return jnp.asarray(value, jnp.float32)
    if shape is None or not hasattr(value, "dtype"):
        raise NotOneNumber(f"the loss is not one number but a {type(value).__name__}; return the mean over the batch")
    if value.size != 1:
        raise NotOneNumber(f"the loss is not one number but has shape {tuple(shape)}; average it: loss.mean()")
    return value.reshape(())
