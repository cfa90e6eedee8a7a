"""Calls of the user's functions while only the light listener is on. Whatever is new is handed on to the full handler."""

from collections.abc import Mapping
from typing import Any, ClassVar

from sleuth.adapters.common.manual_loop.function_kind import FunctionKind
from sleuth.adapters.common.manual_loop.notes import OWN, number_first, number_in
from sleuth.adapters.common.manual_loop.patches import Args, CallHandler, Function, Options
from sleuth.adapters.numpy.watching.full_calls import FullCall
from sleuth.adapters.numpy.watching.light_listener import LightListener
from sleuth.adapters.numpy.watching.weights import argument


class LightCall:
    kind: ClassVar[FunctionKind]

    def __init__(self, light: LightListener, full: CallHandler) -> None:
        self.light, self.full = light, full
        self.inside = light.listener.inside

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        if self.kind in self.inside:
            return None
        self.inside.add(self.kind)
        return self

    def hand_on(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        """Something is new."""
        self.light.wake()
        return self.full.begin(function, args, options)

    def failed(self, *, called: bool) -> None:
        self.inside.discard(self.kind)
        if called:
            self.light.listener.fell = self.light.listener.fell or self.kind

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        self.inside.discard(self.kind)
        if not (self.light.on and self.is_noted(function, args, options, returned)):
            self.full.end(function, args, options, returned)

    def is_noted(self, function: Function, args: Args, options: Options, returned: Any) -> bool:
        """False: what came back is new."""
        return True

    def hear_rate(self, function: Function, args: Args, options: Options) -> None:
        given = argument(function, args, options, "rate")
        if isinstance(given, float | int):
            self.light.rate = float(given)

    def is_lost(self, value: float | None) -> bool:
        """A loss that is not finite: the watch listens in full from here on."""
        if value is None or value - value == 0.0:
            return False
        self.light.wake()
        return True


class LightForward(LightCall):
    kind = FunctionKind.FORWARD

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        light, inside, backwards = self.light, self.inside, len(self.light.parts)
        if FunctionKind.FORWARD in inside or FunctionKind.BACKWARD in inside:
            return None
        if FunctionKind.TRAIN_STEP in inside and backwards:
            return None
        if backwards >= light.usual_backwards and not light.listener.writes_heard:
            light.end_step(None)
            if not light.on:
                return self.full.begin(function, args, options)
        elif light.is_open and not light.validates:
            return self.hand_on(function, args, options)
        light.is_open, light.tentative = True, []
        inside.add(FunctionKind.FORWARD)
        return self


class LightLoss(LightCall):
    kind = FunctionKind.LOSS

    def __init__(self, light: LightListener, full: FullCall) -> None:
        super().__init__(light, full)
        self._number = full.number

    def is_noted(self, function: Function, args: Args, options: Options, returned: Any) -> bool:
        value = number_in(returned)
        if self.is_lost(value):
            return False
        if value is not None:
            self.light.add_loss(self._number, value)
        if type(returned) is tuple and len(returned) > 1 and isinstance(returned[1], Mapping):
            self.light.went_back()
        return True


class LightBackward(LightCall):
    kind = FunctionKind.BACKWARD

    def is_noted(self, function: Function, args: Args, options: Options, returned: Any) -> bool:
        light = self.light
        light.went_back()
        if light.on and light.listener.writes_in_backward and FunctionKind.TRAIN_STEP not in self.inside:
            self.hear_rate(function, args, options)
            light.end_step(returned)
        return True


class LightUpdate(LightCall):
    kind = FunctionKind.UPDATE

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        light = self.light
        if FunctionKind.UPDATE in self.inside:
            return None
        another = light.optimiser is not None and (not args or args[0] is not light.optimiser)
        if another or light.listener.alarms.is_asked:
            return self.hand_on(function, args, options)
        self.hear_rate(function, args, options)
        self.inside.add(FunctionKind.UPDATE)
        return self

    def is_noted(self, function: Function, args: Args, options: Options, returned: Any) -> bool:
        if FunctionKind.TRAIN_STEP not in self.inside:
            self.light.end_step(returned)
        return True


class LightTrainStep(LightCall):
    kind = FunctionKind.TRAIN_STEP

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        if FunctionKind.TRAIN_STEP in self.inside:
            return None
        if self.light.listener.alarms.is_asked:
            return self.hand_on(function, args, options)
        self.hear_rate(function, args, options)
        self.inside.add(FunctionKind.TRAIN_STEP)
        return self

    def is_noted(self, function: Function, args: Args, options: Options, returned: Any) -> bool:
        value = number_in(number_first(returned))
        if self.is_lost(value):
            return False
        if value is not None:
            self.light.add_loss(OWN, value)
        self.light.end_step(returned)
        return True


class LightOther(LightCall):
    """A call that is usual says nothing new."""

    def __init__(self, light: LightListener, full: FullCall) -> None:
        super().__init__(light, full)
        self._word = str(full.kind)

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        if any(usual.startswith(self._word) for usual in self.light.usual):
            return None
        return self.hand_on(function, args, options)


LIGHT: dict[FunctionKind, type[LightCall]] = {
    FunctionKind.FORWARD: LightForward,
    FunctionKind.LOSS: LightLoss,
    FunctionKind.BACKWARD: LightBackward,
    FunctionKind.UPDATE: LightUpdate,
    FunctionKind.TRAIN_STEP: LightTrainStep,
}


def light_call(light: LightListener, full: FullCall) -> LightCall:
    return LIGHT.get(full.kind, LightOther)(light, full)
