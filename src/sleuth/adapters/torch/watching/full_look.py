"""Steps that are looked at in full: what every layer puts out, and the gradients, weights and updates of the step."""

from torch import nn

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.watching import activity
from sleuth.adapters.torch.watching.look_depth import is_deep
from sleuth.adapters.torch.watching.loop import Loop
from sleuth.adapters.torch.watching.optimisers import Held
from sleuth.adapters.torch.watching.record import Look
from sleuth.adapters.torch.watching.unit_notes import UnitNotes
from sleuth.core.observation import Role

# What noting one layer's output costs, by a stopwatch around many: too small to take the time of each.
NOTE_SECONDS = 8e-7


class FullLooks:
    def __init__(self, loop: Loop, *, asked: bool) -> None:
        self.look: Look | None = None  # of the step that is going on
        self._count = 0
        self._asked = asked  # the user said which steps
        self._activity = activity.Activity(_leaf_paths(loop.model), UnitNotes(loop.model), loop.give_up)

    def begin(self, wanted: bool) -> None:
        """Is the step that begins now looked at? Between two looks in a row the layers stay patched: whenever
        nn.Module changes, Python forgets all that it remembers about its subclasses."""
        if wanted:
            self._activity.deep = is_deep(self._count, self._asked)
            activity.start_recording(self._activity)
            self.look = Look()
        elif self.look is not None:
            self.stop()

    def stop(self) -> None:
        activity.stop_recording(self._activity)
        self._activity.drop()
        self.look = None

    def backward(self) -> None:
        if self.look is not None:
            self._activity.flush()

    def before_step(self, held: Held, *, closure: bool) -> None:
        if self.look is None:
            return
        held.weights.refresh()
        if not closure:
            self._passed(held)
        self.look.tables[Role.WEIGHT] = held.weights.keep()

    def after_step(self, held: Held, *, closure: bool) -> Look | None:
        look = self.look
        if look is None:
            return None
        if closure:  # forward and backward ran inside the step
            self._passed(held)
        look.tables[Role.UPDATE] = held.weights.updates()
        self._count += 1
        return look

    def take_notes(self, step: int) -> tuple[Note, ...]:
        return () if self.look is None else self._activity.take_notes(step)

    def note_seconds(self) -> float:
        """What was spent inside the forward, where no stopwatch runs."""
        return self._activity.notes * NOTE_SECONDS

    def let_go(self) -> None:
        self._activity = activity.Activity({}, UnitNotes(nn.Module()), self._activity.give_up)

    def _passed(self, held: Held) -> None:
        assert self.look is not None
        self.look.tables[Role.ACTIVATION] = self._activity.take()
        self.look.tables[Role.GRADIENT] = held.weights.gradients(self._activity.deep)


def _leaf_paths(model: nn.Module) -> dict[int, str]:
    return {id(module): path for path, module in model.named_modules() if path and not module._modules}
