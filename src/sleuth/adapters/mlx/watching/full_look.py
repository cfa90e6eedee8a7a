"""One step looked at in full: what was kept of it is computed at once, and copied. Runs on the training thread."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx

from sleuth.adapters.mlx.arrays import arrays_in, evaluated
from sleuth.adapters.mlx.pass_listener import Hearing, Made
from sleuth.adapters.mlx.watching.look_copy import Backward, Copies, LookCopy


@dataclass
class Look:
    """What was kept of a step. Arrays are held by reference, and may be uncomputed."""

    hearings: list[Hearing] = field(default_factory=list)
    again: Callable[[], Any] | None = None  # the user's function, as it was called
    losses: list[Any] = field(default_factory=list)
    held: list[mx.array] = field(default_factory=list)  # losses of earlier steps
    raw: dict[str, mx.array] = field(default_factory=dict)  # gradients as they were taken
    gradients: dict[str, mx.array] = field(default_factory=dict)  # as the step uses them
    parts: list[Backward] = field(default_factory=list)  # where several gradients make a step
    made: list[Made] = field(default_factory=list)  # that are computed
    before: dict[str, mx.array] = field(default_factory=dict)
    after: dict[str, mx.array] = field(default_factory=dict)

    def compute(self) -> bool:
        """The one time that we have something computed. False: the step stands inside a compiled function."""
        made = [m for h in self.hearings for m in h.made]
        needed = [
            *self.losses,
            *self.held,
            *self.raw.values(),
            *(part.gradient for part in self.parts),
            *self.gradients.values(),
            *self.before.values(),
            *self.after.values(),
        ]
        known = evaluated([*needed, *(m.array for m in made), *(a for h in self.hearings for a in _given(h))])
        self.made = [m for m, is_known in zip(made, known[len(needed) :], strict=False) if is_known]
        return all(known[: len(needed)])

    def copied(self, step: int, optimiser: int) -> LookCopy:
        """Of a look that is computed."""
        copies = Copies()
        return LookCopy(
            step,
            optimiser,
            made=copies.of_made(self.made),
            losses=[copies.of(h.losses) for h in self.hearings],
            # Where the loss of the step is not known, nothing is said of what it was made of.
            loss=copies.of(self.losses[-1]) if self.losses else None,
            raw=copies.of(self.raw),
            gradients=copies.of(self.gradients),
            before=copies.of(self.before),
            after=copies.of(self.after),
            parts=[copies.of(part) for part in self.parts] if len(self.parts) > 1 else [],
            bytes=copies.bytes,
        )

    def loss_bytes(self) -> int:
        """Of what the losses were made of, as far as that was heard."""
        outputs = [a for h in self.hearings for a in arrays_in((h.outputs, [(x.args, x.returned) for x in h.losses]))]
        return 4 * sum(a.nbytes for a in outputs)


def _given(hearing: Hearing) -> Iterator[mx.array]:
    for made in hearing.made:
        yield from made.given
    for heard in hearing.losses:
        yield from arrays_in((heard.args, list(heard.kwargs.values()), heard.returned))
