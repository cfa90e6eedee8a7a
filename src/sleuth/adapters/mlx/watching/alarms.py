"""What the user wants done when something goes wrong: told before the weights are written."""

from collections.abc import Callable

from sleuth.adapters.mlx.watching import full_look
from sleuth.core.contract.guard import Alarm, Guard
from sleuth.core.observation import NotFinite


class Alarms:
    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._due: list[Callable[[], None]] = []

    @property
    def every_step(self) -> bool:
        return self.guard.every_gradient or self.guard.every_activation

    def look(self, look: full_look.Look, step: int) -> None:
        """At a step that is about to be taken."""
        if self.every_step and look.compute():
            for bad in full_look.not_finite(look, step):
                self._not_finite(bad)

    def ask(self, step: int) -> None:
        """What checks found since, and the user wants something done about."""
        while self.guard.asked:
            finding = self.guard.asked.popleft()
            self._tell(Alarm(finding.name, step, finding.summary, finding=finding))

    def speak_up(self) -> None:
        due, self._due = self._due, []
        for act in due:
            act()

    def _not_finite(self, bad: NotFinite) -> None:
        what = "the loss" if bad.what == "loss" else f"the gradient of {bad.where}"
        self._tell(Alarm(f"{bad.what}-not-finite", bad.step, f"{what} is not finite at step {bad.step}", (bad,)))

    def _tell(self, alarm: Alarm) -> None:
        act = self.guard.tell(alarm)
        if act is not None:
            self._due.append(act.do)
