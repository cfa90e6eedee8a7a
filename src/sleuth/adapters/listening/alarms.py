"""One policy for values that are not finite, and for what checks found meanwhile: told before weights are written.

The promise, in every framework: a loss or a gradient that is not finite is met at its step (a gradient at steps that are
looked at in full; at every step where the user asked for it), each kind once; or the framework says why it cannot be.
"""

from collections.abc import Callable, Iterable

import numpy as np

from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.core.contract.guard import Act, Alarm, Guard
from sleuth.core.observation import NotFinite


class Alarms:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._told: set[str] = set()
        self._due: list[Callable[[], None]] = []

    @property
    def every_step(self) -> bool:
        """The user wants every step looked at: to be stopped, or by an assertion."""
        return self.guard.every_gradient or self.guard.every_activation

    @property
    def is_asked(self) -> bool:
        """A check found something that the user wants to be acted upon."""
        return bool(self.guard.asked)

    def before_step(self, step: int, loss: float | None, gradients: Iterable[tuple[str, np.ndarray]] = ()) -> None:
        """`loss`: None where it is not known. A loss that is not finite explains its gradients."""
        bad = not_finite_loss(step, loss) or not_finite_gradient(step, gradients)
        if bad is not None:
            self.not_finite(bad)
        self.ask(step)

    def not_finite(self, bad: NotFinite, *, noted: bool = False) -> None:
        """`noted`: the next drain gives it, with what was found out about it."""
        if bad.what in self._told:
            return
        self._told.add(bad.what)
        what = "the loss" if bad.what == "loss" else f"the gradient of {bad.where}"
        self._tell(Alarm(f"{bad.what}-not-finite", bad.step, f"{what} is not finite at step {bad.step}", () if noted else (bad,)))

    def ask(self, step: int) -> None:
        """What checks found since the last step."""
        while self.guard.asked:
            finding = self.guard.asked.popleft()
            self._tell(Alarm(finding.name, step, finding.summary, finding=finding))

    def speak_up(self) -> None:
        """May raise, because the user asked for it."""
        due, self._due = self._due, []
        for act in due:
            act()

    def _tell(self, alarm: Alarm) -> None:
        act: Act | None = self.guard.tell(alarm)
        if act is not None:
            self._due.append(act.do)


def not_finite_gradient(step: int, gradients: Iterable[tuple[str, np.ndarray]]) -> NotFinite | None:
    """The first one, by the name of its parameter."""
    for path, values in gradients:
        if not np.isfinite(values).all():
            return NotFinite(step, "gradient", path, int(np.isnan(values).sum()), int(np.isinf(values).sum()))
    return None
