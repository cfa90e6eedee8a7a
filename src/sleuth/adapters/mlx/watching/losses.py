"""The losses of steps that are not looked at: read when the user has had them computed, and never before."""

import io
import re
from typing import Any

import mlx.core as mx

# A loss that is computed in the background is waited for only so many steps later.
LAG = 4
# Asking whether a loss is computed costs more where it is not: then it is asked ever more seldom.
MOST_PATIENCE = 256
MOST_HELD = 64
MOST_BYTES = 16 << 20
# Characters of the drawing: a loss function and no more.
SMALL_GRAPH = 6000
FILLING = {"Full", "Broadcast", "AsType"}


def drawn(array: mx.array) -> str:
    """MLX does not say whether an array is computed, but the graph that it draws of one ends where values are."""
    picture = io.StringIO()
    mx.export_to_dot(picture, array)
    return picture.getvalue()


def is_made_of_nothing(array: mx.array) -> bool:
    """Zeros that MLX fills in where there is no way from the loss: nothing else stands in the graph."""
    return set(re.findall(r'label ="(\w+)", shape=rectangle', drawn(array))) <= FILLING


class Patience:
    """With a loop that leaves its losses uncomputed. Some are held until the next look has them computed, in little memory."""

    def __init__(self) -> None:
        self._skip = 0
        self._patience = 1
        self.room = 0  # so many may be held
        self.held = 0

    def learn(self, size: int) -> None:
        """`size`: bytes of what a loss is made of."""
        self.room = min(MOST_HELD, MOST_BYTES // max(size, 1))

    def fate(self, losses: tuple[Any, ...]) -> str:
        """computed, held, or gone."""
        if self._skip > 0:
            self._skip -= 1
            return "gone"
        pictures = [drawn(loss) for loss in losses]
        if not any("->" in picture for picture in pictures):
            self._patience = 1
            return "computed"
        if max(map(len, pictures)) <= SMALL_GRAPH:
            self.held += self.held < self.room
            return "held" if self.held <= self.room and self.room else "gone"
        # The whole step is uncomputed: to draw it takes time, and to hold it memory.
        self._skip, self._patience = self._patience, min(2 * self._patience, MOST_PATIENCE)
        return "gone"


def number_of(losses: tuple[Any, ...]) -> float:
    """Of losses that are computed; several are those of parts of one step."""
    return sum(float(loss.item()) for loss in losses) / len(losses)
