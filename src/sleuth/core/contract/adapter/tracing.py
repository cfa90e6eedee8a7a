"""One step, operation by operation."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from sleuth.core.contract.adapter.bench import Bench
from sleuth.core.location import Location
from sleuth.core.observation import Origin
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection, Flow


class Traces(ABC):
    @abstractmethod
    def connection(self, bench: Bench, batch: Parts) -> Connection:
        """One step, op by op: which parameters the loss reaches and where the graph is cut."""

    @abstractmethod
    def flow(self, bench: Bench, batch: Parts) -> Flow:
        """One forward pass, op by op: which operation feeds which. Raises what the user's code raises."""

    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        """One step, op by op: where the first NaN or Inf is born; None when all is finite."""
        return next((o for o in bench.observe(batch, 0) if isinstance(o, Origin)), None)


@dataclass(frozen=True)
class Bypass:
    """`loss` tells the loss of the present weights as if the derivative of this activation were one around where it was found."""

    name: str
    location: Location | None  # in the forward pass
    loss: Callable[[], float]


class Dissects(ABC):
    """Looking into a backward that the user wrote by hand."""

    @abstractmethod
    def bypasses(self, bench: Bench, batch: Parts) -> list[Bypass]:
        """Of each activation that the forward pass was seen to use, and of all of them together."""

    @abstractmethod
    def backward_line(self, bench: Bench, path: str, *, upstream: bool) -> Location | None:
        """The user's line that makes the gradient of this parameter; `upstream`: that makes what flows into it."""

    @abstractmethod
    def siblings(self, bench: Bench, path: str) -> tuple[str, ...]:
        """Parameters whose gradients are made from the same thing that flows back as that of this one. Where all of them are
        wrong, so is what flows."""
