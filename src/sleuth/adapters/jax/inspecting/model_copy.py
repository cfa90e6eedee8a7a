"""A model to look at: its arrays are never changed in place, so it is only put together anew."""

from typing import Any

from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.inspecting.layer_calls import Follower
from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.program import Progress
from sleuth.adapters.jax.trace import Trace
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Subject


class Guest:
    """`as_is`: in the mode that the user left it in, else in evaluation."""

    def __init__(self, model: Any, inputs: Any, *, as_is: bool = False) -> None:
        self.bench = JaxBench(Subject(model, ()))
        if not self.bench.form.calls:
            raise UnusableInput("there are only parameters, and no function that makes an output of them: give (apply, params).")
        self.bench.set_training(as_is and not getattr(self.bench.form, "in_eval", False))
        self.follower = Follower()
        self.progress = Progress(marks=Marks(follower=self.follower))
        self.inputs = inputs
        self.arrays, self._static = self.bench.parted((inputs, None))

    def trace(self) -> Trace:
        """Raises what the user's code raises."""
        return Trace(self.bench, self.arrays, self._static, self.progress)

    def modules(self) -> list[tuple[str, Any]]:
        bench = self.bench
        return bench.form.modules(bench.form.build(bench.params, bench.rest, bench.training))
