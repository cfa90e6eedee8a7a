"""What a user says of a layer's output in advance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sleuth.core.errors import UnusableInput
from sleuth.core.statistics import Statistics


@dataclass(frozen=True)
class Expect:
    """`shape` holds sizes, None for any: `(None, 64)`. `low` and `high` bound every finite value; `finite` allows neither
    NaN nor Inf."""

    shape: Sequence[int | None] | None = None
    low: float | None = None
    high: float | None = None
    finite: bool = False

    @property
    def reads_values(self) -> bool:
        return self.finite or self.low is not None or self.high is not None

    def broken_by_shape(self, shape: Sequence[int]) -> tuple[str, str] | None:
        """(expected, got) in words; None when it holds."""
        if self.shape is None:
            return None
        same = len(shape) == len(self.shape) and all(e is None or e == s for e, s in zip(self.shape, shape, strict=True))
        return None if same else (f"the shape {_shape(self.shape)}", _shape(shape))

    def broken_by_values(self, values: Statistics) -> tuple[str, str] | None:
        if self.finite and not values.all_finite:
            return "finite values", f"{values.nans} NaN and {values.infs} Inf among {values.count} values"
        below = self.low is not None and values.min < self.low
        above = self.high is not None and values.max > self.high
        if values.nans + values.infs < values.count and (below or above):
            return f"values {self._range()}", f"{values.min:.4g} … {values.max:.4g}"
        return None

    def _range(self) -> str:
        if self.high is None:
            return f"of at least {self.low:g}"
        return f"of at most {self.high:g}" if self.low is None else f"in {self.low:g} … {self.high:g}"


def require_expectations(given: Mapping[str, Expect] | None) -> Mapping[str, Expect]:
    for pattern, expectation in (given or {}).items():
        if not isinstance(expectation, Expect):
            raise UnusableInput(
                f"assertions[{pattern!r}] is {expectation!r}; give a sleuth.Expect, such as sleuth.Expect(shape=(None, 64))."
            )
    return given or {}


def _shape(shape: Sequence[int | None]) -> str:
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"
