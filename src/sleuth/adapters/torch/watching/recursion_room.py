"""Room for the frames that a watch adds to the calls of nested layers."""

import sys
from collections.abc import Callable

# torch takes three frames for each layer that is called, a watch at most two more.
ADDED = 2 / 3


def more_recursion() -> Callable[[], None]:
    """A model that just fits below Python's limit still does while it is watched. What is returned takes the room back."""
    before = sys.getrecursionlimit()
    raised = before + int(before * ADDED)
    sys.setrecursionlimit(raised)

    def take_back() -> None:
        if sys.getrecursionlimit() == raised:  # else the user has set another one
            sys.setrecursionlimit(before)

    return take_back
