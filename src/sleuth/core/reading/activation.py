"""What is known about activations, whatever the framework."""

import numpy as np

# Where the slope has fallen below a tenth of its largest: sigmoid within 0.026 of an end, tanh within 0.05.
ENDS = {
    "sigmoid": (0.026, 0.974),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-0.95, 0.95),
    "hardtanh": (-1.0, 1.0),
}

# Where these say zero their slope is zero as well.
RECTIFIERS = ("relu", "relu6", "hardshrink", "softshrink", "threshold")


def pinned_share(activation: str, values: np.ndarray) -> float | None:
    """The share of values at the ends of a bounded activation; None when it has none, or there are no values."""
    if activation not in ENDS or not values.size:
        return None
    low, high = ENDS[activation]
    return float(np.mean((values <= low) | (values >= high)))
