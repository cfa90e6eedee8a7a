"""What the user wants done before weights are written: at a value that is not finite, and at what a judgement found."""

from collections.abc import Callable, Mapping

import numpy as np

from sleuth.core.contract.guard import Act, Alarm, Guard
from sleuth.core.observation import NotFinite


class Alarms:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._told = False  # something was not finite, and that was said
        self._due: list[Callable[[], None]] = []

    @property
    def is_asked(self) -> bool:
        return bool(self._guard.asked)

    def before_step(self, step: int, loss: float | None, gradients: Mapping[str, np.ndarray]) -> None:
        if loss is not None and not np.isfinite(loss):
            self._tell(NotFinite(step, "loss", None, int(np.isnan(loss)), int(np.isinf(loss))))
        bad = next(((k, g) for k, g in gradients.items() if not np.isfinite(g).all()), None)
        if bad is not None:
            self._tell(NotFinite(step, "gradient", bad[0], int(np.isnan(bad[1]).sum()), int(np.isinf(bad[1]).sum())))
        while self._guard.asked:
            finding = self._guard.asked.popleft()
            self._acted(self._guard.tell(Alarm(finding.name, step, finding.summary, finding=finding)))

    def _tell(self, bad: NotFinite) -> None:
        if not self._told:
            self._told = True
            message = f"the {bad.what} is not finite at step {bad.step}"
            self._acted(self._guard.tell(Alarm(f"{bad.what}-not-finite", bad.step, message, (bad,))))

    def _acted(self, act: Act | None) -> None:
        if act is not None:
            self._due.append(act.do)

    def act(self) -> None:
        while self._due:
            self._due.pop(0)()
