"""Which arguments of a loss function are the inputs and which is the target, where no model is called that could tell.

An input meets the weights themselves; a target meets only what was made of both.
"""

from dataclasses import dataclass

from sleuth.adapters.mlx.watching.tape import Tape


@dataclass(frozen=True)
class Roles:
    """Paths among the arguments."""

    inputs: tuple[str, ...]
    target: str | None


def roles_of(tape: Tape) -> Roles | None:
    """None where it cannot be told."""
    if not tape.is_readable or not tape.weights or not tape.fed:
        return None
    learned = tape.depends(set(tape.weights))
    pure = learned - tape.depends(set(tape.fed.values()))
    inputs = tuple(path for path, number in tape.fed.items() if _meets(tape, number, learned, pure))
    targets = [path for path, number in tape.fed.items() if path not in inputs and _meets(tape, number, learned, learned)]
    if not inputs or (len(inputs) > 1 and not targets):
        return None
    return Roles(inputs, targets[0] if len(targets) == 1 else None)


def _meets(tape: Tape, number: int, learned: set[int], others: set[int]) -> bool:
    """Does something that is made of this array alone go into an operation together with one of these?"""
    own = tape.depends({number}) - learned
    return any(not own.isdisjoint(call.given) and not others.isdisjoint(call.given) for call in tape.calls)
