"""The tape of a loss function of a tree, parted into a model and a loss where what is made of the inputs meets the target.

There is no such place in the user's code. It is the last array that holds all that the loss takes from the inputs.
"""

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from sleuth.adapters.mlx.arrays import is_array
from sleuth.adapters.mlx.trees.roles import Roles
from sleuth.adapters.mlx.trees.tree import Tree
from sleuth.adapters.mlx.watching.recomputed_loss import DICE, SAME, UNREADABLE, UNTOLD, TapeLoss, counts
from sleuth.adapters.mlx.watching.tape import Tape


class Program:
    """The model's part. An object of its own, which is never copied: a module would look into the tape."""

    def __init__(self, tape: Tape, inputs: tuple[int, ...], output: int) -> None:
        self.tape, self.inputs, self.output = tape, inputs, output

    def __deepcopy__(self, memo: dict[int, Any]) -> "Program":
        return self


class TreeModel(Tree):
    """The tree, and what the loss function does with it before the target comes in."""

    def __init__(self, weights: Any, code: Any, program: Program) -> None:
        super().__init__(weights, code)
        self._program = program

    def __call__(self, *inputs: Any) -> mx.array:
        program, own = self._program, dict(tree_flatten(self.parameters()))
        known = {number: own[name] for number, name in program.tape.weights.items()}
        known |= dict(zip(program.inputs, inputs, strict=True))
        if any(is_array(a) and a.dtype == mx.float64 for a in known.values()):
            known |= program.tape.widened(known)
        return program.tape.run(known, program.output)


@dataclass(frozen=True)
class Parted:
    program: Program | None
    loss: TapeLoss | None
    obstacle: str = ""
    batch_size: int | None = None


def parted(tape: Tape, roles: Roles | None, value: float | None) -> Parted:
    """`value`: of the loss, where it is known."""
    if roles is None or not tape.is_readable:
        return Parted(None, None, UNREADABLE)
    target = tape.fed.get(roles.target or "none")
    inputs = tuple(tape.fed[path] for path in roles.inputs)
    result = _result(tape, value)
    if target is None or result is None or not all(tape.arrays[n].ndim for n in inputs):
        return Parted(None, None, UNTOLD if result is not None else UNREADABLE)
    known = {*inputs, target, *tape.weights}
    calls = tape.behind(result, known)
    if any(call.owner is mx.random for call in calls):
        return Parted(None, None, DICE)
    others = tape.sources(result, known) & set(tape.fed.values())
    output = _output(tape, result, set(inputs), target)
    if output is None or any(tape.arrays[n].ndim for n in others):
        return Parted(None, None, UNTOLD)
    tape.outputs = (output,)
    samples = tape.arrays[inputs[0]].shape[0]
    size = samples if any(counts(call, samples) for call in calls) else None
    return Parted(Program(tape, inputs, output), TapeLoss(tape, result, target), batch_size=size)


def _result(tape: Tape, value: float | None) -> int | None:
    learned = tape.depends(set(tape.weights))
    made = [n for call in tape.calls for n in call.made if n in learned and _is_number(tape.arrays[n])]
    fits = [n for n in made if value is None or abs(float(tape.arrays[n].item()) - value) <= SAME * abs(value)]
    return fits[-1] if fits else None


def _is_number(array: mx.array) -> bool:
    return array.size == 1 and mx.issubdtype(array.dtype, mx.floating)


def _output(tape: Tape, result: int, inputs: set[int], target: int) -> int | None:
    given = (tape.depends(set(tape.weights)) & tape.depends(inputs)) - tape.depends({target})
    for call in reversed(tape.behind(result, set())):
        for number in call.made:
            if number in given and not tape.sources(result, {number, target, *tape.weights}) & inputs:
                return number
    return None
