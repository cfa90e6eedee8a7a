"""Where output and target of a loss meet, and become larger together than either was."""

from dataclasses import dataclass

from sleuth.core.location import Location

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Meeting:
    output: Shape
    target: Shape
    shape: Shape  # of both together
    location: Location | None
