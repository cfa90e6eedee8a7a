"""Where the tensors of a loss expression come from that it does not make itself, so that they are found again at another step."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import ReferenceType, ref

import torch
from torch import nn

from sleuth.adapters.torch.watching.origin.tape import Tape
from sleuth.adapters.torch.watching.step_memory import Memory
from sleuth.adapters.torch.watching.user_variables import Variable, variables

# For looking through the user's variables, once a tape.
SECONDS = 0.05
# A tensor of which nothing else is known is taken for a constant, up to this size.
MOST_CONSTANT = 4096


@dataclass(frozen=True)
class Source:
    """All the ways in which one tensor was known; the first that still leads somewhere counts."""

    parameter: str | None = None
    input: tuple[int, int] | None = None  # call of the model, number among its tensors
    other: int | None = None  # number among the rest of the loader's batch
    variables: tuple[tuple[str, str, tuple[int, int]], ...] = ()  # name, file, lines of the function
    weak: ReferenceType[torch.Tensor] | None = None
    value: torch.Tensor | None = None


@dataclass
class Surroundings:
    """What a step has at hand."""

    model: nn.Module
    memory: Memory
    others: Sequence[torch.Tensor]

    def named(self) -> dict[str, torch.Tensor]:
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    def variables(self) -> list[Variable]:
        return [v for v in variables(sys._getframe(1), SECONDS) if isinstance(v.value, torch.Tensor)]


def learn(tape: Tape, alive: Sequence[torch.Tensor], around: Surroundings) -> None:
    names = {id(t): name for name, t in around.named().items()}
    places = {id(t): (n, i) for n, call in enumerate(around.memory.forwards) for i, t in enumerate(call.inputs)}
    others = {id(t): number for number, t in enumerate(around.others)}
    wanted = [*tape.leaves, *tape.prepared]
    found = around.variables() if any(id(alive[slot]) not in names for slot in wanted) else []
    with torch.no_grad():
        for slot in wanted:
            tensor, leaf = alive[slot], slot in tape.leaves
            key = id(tensor)
            source = Source(
                names.get(key),
                places.get(key),
                others.get(key),
                tuple((v.name, v.file, v.lines) for v in found if v.value is tensor),
                ref(tensor) if leaf else None,
                tensor.detach().clone() if leaf and tensor.numel() <= MOST_CONSTANT else None,
            )
            (tape.leaves if leaf else tape.prepared)[slot] = source


def find(
    tape: Tape, around: Surroundings, twins: dict[str, torch.Tensor], inputs: list[list[torch.Tensor]]
) -> tuple[dict[int, torch.Tensor], bool]:
    """By slot, as far as they are there; `twins` are the parameters and buffers, `inputs` the model's, both of the copy that is
    done again. And whether one was taken for a constant."""
    sources = {**tape.leaves, **tape.prepared}
    named = any(s.variables for s in sources.values())
    found = {(v.name, v.file, v.lines): v.value for v in around.variables()} if named else {}
    known, guessed = {}, False
    for slot, source in sources.items():
        tensor = _found(source, around, found, twins, inputs)
        if tensor is None and source.value is not None:
            tensor, guessed = source.value.clone(), True
        if tensor is not None:
            known[slot] = tensor
    return known, guessed


def _found(
    source: Source,
    around: Surroundings,
    named: dict[tuple[str, str, tuple[int, int]], torch.Tensor],
    twins: dict[str, torch.Tensor],
    inputs: list[list[torch.Tensor]],
) -> torch.Tensor | None:
    if source.parameter is not None and source.parameter in twins:
        return twins[source.parameter]
    if source.input is not None and source.input[0] < len(inputs) and source.input[1] < len(inputs[source.input[0]]):
        return inputs[source.input[0]][source.input[1]]
    if source.other is not None and source.other < len(around.others):
        return _own(around.others[source.other])
    met = next((named[place] for place in source.variables if place in named), None)
    met = met if met is not None or source.weak is None else source.weak()
    return None if met is None else _own(met)


def _own(tensor: torch.Tensor) -> torch.Tensor:
    copy = tensor.detach().clone()
    return copy.requires_grad_() if tensor.requires_grad else copy
