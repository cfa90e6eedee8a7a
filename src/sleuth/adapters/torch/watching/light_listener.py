"""Steps between those that are heard in full: the light listener hears only what must not be missed.

Which is the loss of every step, a value that is not finite, what a scene would need, a validation, and whatever is new in the
loop. How the loop is written shows in the steps that are heard in full, and those come again and again.
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch.optim import Optimizer

from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.optimisers import Held
from sleuth.adapters.torch.watching.step_memory import Memory
from sleuth.core.observation.calls import WITHOUT_GRAPH, CallKind

if TYPE_CHECKING:
    from sleuth.adapters.torch.watching.watcher import Watcher


class LightListener(TorchEvents):
    """Hears in the watcher's place. All of it has to be paid at every step, when the processor remembers nothing of us: few
    functions, each short, no stopwatch, no lines, no order of calls."""

    def __init__(self, watcher: "Watcher") -> None:
        self._watcher = watcher
        self._usual: frozenset[str] = frozenset()  # what the last step that was heard in full called
        self._asked_for_answers = False  # and whether it called the model without a graph
        self._training = True
        self.memory = Memory()
        self._losses: list[float | torch.Tensor] = []
        self._backwards = 0
        self._most_backwards = 0
        self._held: Held | None = None  # whose step is going on
        self._inner = 0  # a step may call another one's
        self._alarmed = False

    def begin(self, usual: Mapping[str, int], training: bool) -> None:
        self._usual = frozenset(usual)
        self._asked_for_answers = any(kind in self._usual for kind in WITHOUT_GRAPH)
        self._most_backwards = 2 * usual.get(CallKind.BACKWARD, 0)
        self._training = training
        self.memory, self._losses, self._backwards, self._inner, self._alarmed = Memory(), [], 0, 0, False

    def give_up(self, error: Exception) -> None:
        self._watcher.give_up(error)

    # The model and its loss.

    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        watcher = self._watcher
        if torch.is_grad_enabled():
            if watcher.model.training is self._training:
                self.memory.forward(args, kwargs, draws=watcher.scenes.draws)
                watcher.scenes.mark_part(self.memory)
                return
        elif self._asked_for_answers:
            return
        self._hand_on(watcher.hear_forward, args, kwargs)

    def hear_output(self, output: Any) -> None:
        if self.memory.forwards:
            last = self.memory.forwards[-1]
            if isinstance(output, torch.Tensor):
                last.outputs = [("", ref(output))]
            else:
                last.returned(output)

    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        self.memory.loss(name, args, kwargs, returned)

    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        watcher = self._watcher
        self._backwards += 1
        self._inner = 0  # a step that raised has no end
        if watcher.full_looks.look is not None:
            watcher.full_looks.backward()
        self.memory.latest = ref(loss)
        watcher.loss = None
        if loss.numel() == 1:
            value = watcher.loss = loss.item() if loss.is_cpu else loss.detach()
            self._losses.append(value)
            if type(value) is float and not math.isfinite(value):
                self._alarmed = True
                watcher.scenes.recall(self.memory)
                watcher.scenes.backward(loss, options)

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        if self._alarmed:
            self._alarmed = False
            self._watcher.scenes.backward_end(loss)
        if self._backwards > self._most_backwards:  # the loop has become another one
            self._watcher.switch.listen_fully(None, self._backwards, self._losses)

    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None:
        self._watcher.hear_backward_failed(loss, error)

    # The optimiser.

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None:
        watcher = self._watcher
        if self._inner:
            self._inner += 1
            return
        held = watcher.optimisers.known(optimiser)
        if held is not None and closure is None:
            self._held, self._inner = held, 1
            watcher.stepping = held.number
            if watcher.full_looks.look is not None:
                watcher.timed(watcher.full_looks.before_step, held)
            if watcher.scenes.trips(held.number):
                watcher.scenes.recall(self.memory)
                watcher.scenes.before_step(held.number)
        # What is due is done before this step goes on, and the step is heard in full.
        if watcher.due or (not self._inner and (closure is not None or watcher.may_find(optimiser))):
            self._inner = 0
            watcher.switch.listen_fully(None, self._backwards, self._losses)
            watcher.hear_step(optimiser, closure)

    def hear_step_end(self, optimiser: Optimizer) -> None:
        if not self._inner:
            return
        self._inner -= 1
        if self._inner:
            return
        held = self._held
        assert held is not None
        losses, self._losses, self._backwards = self._losses, [], 0
        self.memory = Memory()
        self._watcher.pass_step(held, optimiser, losses, self._training)

    # The loop. What the last step called as well says nothing new.

    def hear_call(self, kind: CallKind, thing: Any) -> None:
        if kind not in self._usual and (kind != CallKind.ZERO_GRAD or self._is_known(thing)):
            self._hand_on(self._watcher.hear_call, kind, thing)

    def _is_known(self, thing: Any) -> bool:
        return not isinstance(thing, Optimizer) or self._watcher.optimisers.known(thing) is not None

    def hear_made(self, optimiser: Optimizer) -> None:
        self._watcher.hear_made(optimiser)

    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        if (CallKind.TOLD_SCHEDULER if told else CallKind.SCHEDULER) not in self._usual:
            self._hand_on(self._watcher.hear_scheduler, scheduler, told)

    def hear_scale(self, loss: torch.Tensor, enabled: bool) -> None:
        self._hand_on(self._watcher.hear_scale, loss, enabled)

    def hear_index(self, iterator: Any, positions: Any) -> None:
        self._watcher.scenes.index(iterator, positions)

    def hear_batch(self, iterator: Any, batch: Any) -> None:
        if iterator._num_yielded <= 1:  # a pass begins
            self._watcher.hear_batch(iterator, batch)
        else:
            self._watcher.scenes.batch(iterator, batch)

    def _hand_on(self, hear: Callable[..., None], *args: Any) -> None:
        """To the watcher, who hears from now on. Not between a backward and its step: half a step, heard in full, would look
        like something else."""
        if not self._backwards:
            self._watcher.switch.listen_fully(None)
            hear(*args)
