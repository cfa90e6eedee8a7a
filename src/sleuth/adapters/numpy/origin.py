"""Where the first NaN or Inf of a forward and loss is born."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.made_values import Made
from sleuth.adapters.numpy.failure import layer_of
from sleuth.adapters.numpy.pass_listener import Listener, is_array
from sleuth.core.observation import Origin
from sleuth.core.runtime.place import location_of
from sleuth.core.runtime.tree import leaves


def find_origin(
    listener: Listener, given: Iterable[np.ndarray], value: Any, again: Callable[[], Any], step: int
) -> Origin | None:
    """The first layer that makes NaN or Inf of finite values, and in it the operation that NumPy complains about.

    `given` went in; `value` is the loss; `again` does the same once more.
    """
    made = [a for _, a in leaves(listener.outputs, is_array)] + [np.asarray(0.0 if value is None else value)]
    if all(map(_is_finite, made)) or not all(map(_is_finite, given)):
        return None
    bad = next((made for made in listener.made if not _is_finite(made.values)), None)
    return _complaint(listener.model, again, bad, step) or _layer_alone(bad, step)


def _complaint(model: Any, again: Callable[[], Any], bad: Made | None, step: int) -> Origin | None:
    """NumPy made to raise: the operation and the line. An overflow in another layer may be harmless and is not told."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
            again()
    except FloatingPointError as error:
        layer = layer_of(error.__traceback__, model)
        if bad is None or layer is None or layer == bad.path:
            operation = str(error).rsplit(" ", 1)[-1]
            return Origin(step, operation, "forward", layer, (), location_of(error.__traceback__), *_counts(bad))
    return None


def _layer_alone(bad: Made | None, step: int) -> Origin | None:
    if bad is None:
        return None
    return Origin(step, bad.operation, "forward", bad.path, (), bad.location, *_counts(bad))


def _counts(bad: Made | None) -> tuple[int, int]:
    return (0, 0) if bad is None else (int(np.isnan(bad.values).sum()), int(np.isinf(bad.values).sum()))


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
