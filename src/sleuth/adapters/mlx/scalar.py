"""A loss is one number, or it cannot be differentiated."""

from typing import Any

from sleuth.adapters.mlx.arrays import is_array


class NotOneNumber(ValueError):
    """A loss that cannot be differentiated."""


def require_scalar(loss: Any) -> None:
    if not is_array(loss) or loss.size != 1:
        got = f"an array of shape {tuple(loss.shape)}" if is_array(loss) else f"a {type(loss).__name__}"
        raise NotOneNumber(f"the loss is not one number but {got}; average it: loss.mean(), or reduction='mean'")
