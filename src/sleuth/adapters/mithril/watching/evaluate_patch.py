"""evaluate() of one physical model, wrapped on its class for the time of a watch."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

Heard = Callable[[Mapping[str, Any], Mapping[str, Any], Any, Any], None]  # params, data, output_gradients, what came back


class Tap:
    """`begin` is told what evaluate is given, `end` also what it returned. Both must not raise, but for what the user asked."""

    def __init__(self, physical: Any, begin: Callable[[Any, Any, Any], None], end: Heard, fell: Callable[[], None]) -> None:
        self._physical, self._begin, self._end, self._fell = physical, begin, end, fell
        self._undo: Callable[[], None] | None = None

    def open(self) -> None:
        kind, physical = type(self._physical), self._physical
        raw = kind.evaluate
        own = "evaluate" in vars(kind)
        begin, end, fell = self._begin, self._end, self._fell

        @functools.wraps(raw)
        def evaluate(self: Any, *args: Any, **options: Any) -> Any:
            if self is not physical:
                return raw(self, *args, **options)
            params = args[0] if args else options.get("params")
            data = args[1] if len(args) > 1 else options.get("data")
            wanted = options.get("output_gradients", False)
            begin(params or {}, data or {}, wanted)
            try:
                returned = raw(self, *args, **options)
            except BaseException:
                fell()
                raise
            end(params or {}, data or {}, wanted, returned)
            return returned

        kind.evaluate = evaluate
        self._undo = lambda: setattr(kind, "evaluate", raw) if own else delattr(kind, "evaluate")

    def close(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
