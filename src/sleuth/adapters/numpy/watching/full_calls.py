"""Calls of the user's functions, told to the listener while it listens in full."""

from typing import Any

from sleuth.adapters.common.manual_loop.function_kind import FunctionKind
from sleuth.adapters.common.manual_loop.notes import OWN
from sleuth.adapters.common.manual_loop.patches import Args, CallHandler, Function, Options
from sleuth.adapters.numpy.watching.listener import NumpyListener


class FullCall:
    """`number`: of a loss. A call inside of another of its kind is part of that."""

    def __init__(self, listener: NumpyListener, kind: FunctionKind, number: int = OWN) -> None:
        self.listener, self.kind, self.number = listener, kind, number

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        return self._begun(function, args, options, None)

    def _begun(self, function: Function, args: Args, options: Options, of: Any) -> CallHandler | None:
        listener = self.listener
        if self.kind in listener.inside:
            return None
        if self.kind is not FunctionKind.LOSS:
            listener.begin(self.kind, function, args, options, of)
        listener.inside.add(self.kind)
        return self

    def failed(self, *, called: bool) -> None:
        self.listener.inside.discard(self.kind)
        if called:
            self.listener.fell = self.listener.fell or self.kind

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        self.listener.inside.discard(self.kind)
        self.listener.fell = None
        self.listener.end(self.kind, self.number, function, args, options, returned)


class OptimiserCall(FullCall):
    """Of any optimiser of the class: a loop may make another one on the way."""

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler | None:
        known = args and self.listener.optimisers.knows(args[0])
        return self._begun(function, args, options, args[0]) if known else None


class LayerCall:
    """Of a list of layers `is_first` tells that a forward begins."""

    def __init__(self, listener: NumpyListener, path: str, layer: Any, *, is_first: bool) -> None:
        self._listener, self._path, self._layer, self._is_first = listener, path, layer, is_first

    def begin(self, function: Function, args: Args, options: Options) -> CallHandler:
        if self._is_first:
            self._listener.begin(FunctionKind.FORWARD, function, args, options)
        return self

    def failed(self, *, called: bool) -> None: ...

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        if self._listener.notes.looked:
            self._listener.layer_made(self._path, self._layer, returned)
