"""What a comparison found: numbers first, text and HTML of them where somebody asks."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from sleuth.core.errors import UnusableInput

SAME, DIFFERS, UNKNOWN, FAILED = "same", "differs", "unknown", "failed"


@dataclass(frozen=True)
class Row:
    """One thing that both have: a layer's output, the model's, the loss, a parameter's gradient or its first update."""

    stage: str  # "layer", "output", "loss", "gradient", "step"
    first: str
    other: str
    kind: str
    difference: float  # relative, root mean square
    explained: float  # what rounding may explain
    remark: str = ""

    @property
    def differs(self) -> bool:
        return not self.difference <= self.explained


@dataclass(frozen=True)
class Reason:
    """A usual reason that was tried: with it alone taken away, `before` becomes `after`."""

    name: str
    text: str
    before: float
    after: float


@dataclass(frozen=True)
class Pair:
    """The first model against one of the others."""

    first: str
    other: str
    status: str
    carried: int  # parameters
    parameters: int  # of the first
    not_carried: tuple[str, ...]
    precision: str  # how rounding was told apart
    rows: tuple[Row, ...]
    reasons: tuple[Reason, ...]
    tried: tuple[str, ...]  # usual reasons that do not explain it
    notes: tuple[str, ...]
    error: str | None = None

    @property
    def parted(self) -> Row | None:
        return next((row for row in self.rows if row.differs), None)


@dataclass(frozen=True)
class Backend:
    """How one model fared by itself, with the weights of the first."""

    name: str
    framework: str
    version: str
    status: str
    shape: tuple[int, ...] | None
    finite: bool | None
    loss: float | None
    error: str | None = None


@dataclass(frozen=True)
class Comparison:
    backends: tuple[Backend, ...]
    pairs: tuple[Pair, ...]

    @property
    def status(self) -> str:
        found = {pair.status for pair in self.pairs}
        return next((status for status in (DIFFERS, FAILED, UNKNOWN) if status in found), SAME)

    @property
    def parted(self) -> Row | None:
        """The first thing that differs, of the first pair that does."""
        return next((pair.parted for pair in self.pairs if pair.parted is not None), None)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return tuple(reason for pair in self.pairs for reason in pair.reasons)

    def to_dict(self) -> dict[str, Any]:
        pairs = [
            {**asdict(pair), "parted": None if pair.parted is None else asdict(pair.parted), "rows": _rows(pair)}
            for pair in self.pairs
        ]
        return _plain({"status": self.status, "backends": [asdict(b) for b in self.backends], "pairs": pairs})

    def __str__(self) -> str:
        from sleuth.comparing.telling import told

        return told(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def require_same(self) -> None:
        """For tests: raises where a model differs, fails or could not be compared."""
        if self.status != SAME:
            raise AssertionError(str(self))


def _rows(pair: Pair) -> list[dict[str, Any]]:
    return [{**asdict(row), "differs": row.differs} for row in pair.rows]


def _plain(thing: Any) -> Any:
    """NaN and Inf become text: JSON has no word for them."""
    if isinstance(thing, dict):
        return {key: _plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(value) for value in thing]
    if isinstance(thing, float) and not np.isfinite(thing):
        return str(thing)
    return thing


def require_batch(batch: Any) -> Any:
    if batch is None:
        raise UnusableInput("something to call the models with is missing: give a batch, compare(a, b, (x, y)).")
    return batch
