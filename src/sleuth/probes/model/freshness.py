"""Whether weights are still what an initialiser drew: training blurs the ends of a uniform draw, and exact zeros and ones."""

from collections.abc import Iterable, Iterator

import numpy as np

# The largest of n uniform draws stays within this many n-ths of the bound, but for one case in twenty thousand.
GAP = 10.0
# Standard errors: all matrices of a trunk must pass, so none may fail by chance.
SURE = 5.0
# Rounding of a bound in float32; half precision keeps three digits.
ROUNDING = 1e-5
HALF_ROUNDING = 5e-3
# Below, columns look alike by chance.
LEAST_ROWS = 64
# Of a table whose columns are compared with each other.
MOST_COLUMNS = 128
# Spreads that are drawn whatever the width, as in GPT and DCGAN.
USUAL_STD = (0.02, 0.01)
# The fourth moment of a normal draw, and where its numbers end in spreads; Keras and Flax draw anew what is further out than two.
NORMAL = (3.0, float("inf"))
TRUNCATED = (2.366, 2.2737)


def uniform_draw(values: np.ndarray, fans: Iterable[int], half: bool = False) -> bool:
    """Does it end where an initialiser's range ends, and is it as wide as a uniform draw in between?"""
    n, top, spread = values.size, float(np.abs(values).max(initial=0.0)), float(np.std(values))
    slack = HALF_ROUNDING if half else ROUNDING
    return any(
        -slack <= 1 - top / bound <= GAP / n + slack and abs(spread * 3**0.5 / bound - 1) <= SURE * (0.2 / n) ** 0.5 + slack
        for bound in bounds(fans)
    )


def within_bounds(values: np.ndarray, fans: Iterable[int]) -> bool:
    """For the few numbers of a bias, whose ends say less."""
    return float(np.abs(values).max(initial=0.0)) <= (1 + HALF_ROUNDING) * max(bounds(fans), default=0.0)


def normal_draw(values: np.ndarray, fans: Iterable[int]) -> bool:
    """As an initialiser's normal draw would look: its spread, its mean and its tails within their chance."""
    n, mean, spread = values.size, float(np.mean(values)), float(np.std(values))
    if spread == 0 or abs(mean) > SURE * spread / n**0.5:
        return False
    tails, top = float(np.mean(((values - mean) / spread) ** 4)), float(np.abs(values).max())
    slack = SURE * (0.5 / n) ** 0.5
    return any(
        abs(spread / std - 1) <= slack and abs(tails - usual) <= SURE * (24 / n) ** 0.5 and top <= (1 + ROUNDING) * end * std
        for std in _spreads(fans)
        for usual, end in (NORMAL, TRUNCATED)
    )


def table_draw(values: np.ndarray) -> bool:
    """Rows of numbers that know nothing of each other, all columns alike, whatever their spread: vectors that somebody learned
    have columns of different size and middle, and columns that go together."""
    rows, spread = len(values), float(np.std(values))
    if values.ndim != 2 or rows < LEAST_ROWS or spread == 0:
        return False
    middles = np.abs(values.mean(axis=0)) * rows**0.5 / spread
    spreads = np.abs(values.std(axis=0) / spread - 1) * (2 * rows) ** 0.5
    tails = float(np.mean((values / spread) ** 4))
    together = np.corrcoef(values[:, :MOST_COLUMNS], rowvar=False) * rows**0.5 if values.shape[1] > 1 else np.zeros((1, 1))
    alike = middles.max() <= SURE and spreads.max() <= SURE
    drawn = min(abs(tails - 3), abs(tails - 1.8)) <= SURE * (24 / values.size) ** 0.5
    return bool(alike and drawn and np.abs(together - np.diag(np.diag(together))).max() <= SURE)


def fans_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers on both sides, in pairs; which of a pair is the input is a matter of the layer's kind. Where a window comes first,
    last or between its channels is a matter of the framework."""
    size, last = int(np.prod(shape, dtype=np.int64)), len(shape) - 1
    sides = dict.fromkeys(((0, 1), (last - 1, last), (0, last)))  # in PyTorch, in Keras and Flax, in MLX
    return tuple(fan for one, other in sides for fan in (size // shape[other], size // shape[one]))


def bounds(fans: Iterable[int]) -> Iterator[float]:
    """Of PyTorch's own start, of He's, LeCun's and Glorot's."""
    fans = list(fans)
    for fan in fans:
        yield from (fan**-0.5, (6 / fan) ** 0.5, (3 / fan) ** 0.5)
    for one, other in zip(fans[::2], fans[1::2], strict=False):
        yield (6 / (one + other)) ** 0.5


def _spreads(fans: Iterable[int]) -> Iterator[float]:
    fans = list(fans)
    yield from USUAL_STD
    for fan in fans:
        yield from (fan**-0.5, (2 / fan) ** 0.5)
    for one, other in zip(fans[::2], fans[1::2], strict=False):
        yield (2 / (one + other)) ** 0.5
