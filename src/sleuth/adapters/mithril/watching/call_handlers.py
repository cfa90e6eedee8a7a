"""Calls of evaluate(), of the optimiser and of losses, told to the listener."""

from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.patches import Args, Function, Options
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.watching.listener import MithrilListener


class _Call:
    def __init__(self, listener: MithrilListener) -> None:
        self.listener = listener

    def begin(self, function: Function, args: Args, options: Options) -> "_Call":
        return self

    def failed(self, *, called: bool) -> None: ...

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None: ...


class EvaluateCall(_Call):
    def begin(self, function: Function, args: Args, options: Options) -> "_Call":
        self.listener.evaluate(*_given(args, options))
        return self

    def failed(self, *, called: bool) -> None:
        if called:
            self.listener.broke()

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        self.listener.evaluated(*_given(args, options), returned)


class UpdateCall(_Call):
    def begin(self, function: Function, args: Args, options: Options) -> "_Call":
        given = (a for a in (*args[2:], *options.values()) if isinstance(a, dict) and _is_gradients(a))
        self.listener.update(next(given, None))
        return self

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        self.listener.updated(returned)


class LossCall(_Call):
    def __init__(self, listener: MithrilListener, number: int) -> None:
        super().__init__(listener)
        self._number = number

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> None:
        self.listener.loss_said(self._number, function, args, options, returned)


def _given(args: Args, options: Options) -> tuple[Any, Any, Any]:
    """params, data and output_gradients, of evaluate(self, params, data, …)."""
    params = args[1] if len(args) > 1 else options.get("params")
    data = args[2] if len(args) > 2 else options.get("data")
    return params or {}, data or {}, options.get("output_gradients", False)


def _is_gradients(tree: dict[str, Any]) -> bool:
    return bool(tree) and all(isinstance(v, np.ndarray) or arrays.is_array(v) for v in tree.values())
