"""What the user's loop computes between the model and the backward, as calls that can be made again with other values."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from sleuth.adapters.listening.listener import Lost
from sleuth.adapters.torch.pass_listener import is_tensor, name_of
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.call_places import calling_frame, users_line
from sleuth.adapters.torch.watching.origin.lines import Lines
from sleuth.core.location import Location
from sleuth.core.runtime.tree import leaves, map_arrays

# A loss of more operations than this is a model of its own.
MOST_CALLS = 600
PLAIN: tuple[type, ...] = (int, float, complex, bool, str, bytes, slice, type(None), type(...))
PLAIN += (torch.dtype, torch.device, torch.layout, torch.memory_format)


class Slot(NamedTuple):
    """A tensor, by the order in which it was met."""

    number: int


@dataclass(frozen=True)
class Recorded:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    given: tuple[int, ...]
    made: tuple[int, ...]
    location: Location | None
    gradient: bool  # was a graph built?
    autocast: tuple[str, torch.dtype] | None
    opaque: bool  # it was given something that is not kept

    @property
    def writes(self) -> bool:
        """Into what it is given."""
        name = name_of(self.function)
        plain = name.endswith("_") and not name.endswith("__")
        return plain or name == "__setitem__" or "out" in self.kwargs or bool(set(self.given) & set(self.made))


@dataclass
class Tape:
    calls: list[Recorded] = field(default_factory=list)
    outputs: dict[int, tuple[int, str]] = field(default_factory=dict)  # slot: call of the model, path in what it returned
    root: int = -1  # the slot that went backward
    leaves: dict[int, Any] = field(default_factory=dict)  # slot: where it comes from
    prepared: dict[int, Any] = field(default_factory=dict)  # the same of what is made before the model has its say
    single: frozenset[int] = frozenset()  # of `outputs`: those that are one number

    def run(self, known: dict[int, torch.Tensor], around: Callable[[Recorded], ExitStack]) -> torch.Tensor:
        """Once more; `known` are the tensors that come from outside, and becomes all of them. What is known already is not made
        again, and what cannot be made may not be needed. Raises LookupError where it is."""
        for call in self.calls:
            if (call.made and not call.writes and known.keys() >= set(call.made)) or not known.keys() >= set(call.given):
                continue
            args, kwargs = (map_arrays(part, lambda slot: known[slot.number], _is_slot) for part in (call.args, call.kwargs))
            with around(call), torch.set_grad_enabled(call.gradient):
                output = call.function(*args, **kwargs)
            found = [t for _, t in leaves(output, is_tensor)]
            known.update(zip(call.made, found, strict=True))
        return known[self.root]


class TapeRecorder(TorchFunctionMode):
    """Stands between the user's code and torch for a few steps; hands everything on as it is."""

    def __init__(self, lost: Lost, lines: bool = False) -> None:
        """`lines`: of the operations inside the model too."""
        super().__init__()
        self._lost = lost
        self.paused = False
        self.full = False  # given up: it became too long, or something went wrong
        self.calls: list[Recorded] = []
        self.outputs: dict[int, tuple[int, str]] = {}
        self.lines = Lines() if lines else None
        self._slots: dict[int, int] = {}
        self.alive: list[torch.Tensor] = []  # by slot: while they live, their ids are unique
        self._storages: dict[int, set[int]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            func = _unwatched(func)
        except Exception as error:
            self._lost("an operation on the way to the loss may have been heard twice", error)
        output = func(*args, **(kwargs or {}))
        if self.lines is not None:
            try:
                self.lines.note(output)
            except Exception as error:
                self._lost("the line behind an operation could not be told", error)
        if not (self.paused or self.full):
            try:
                self._note(func, args, kwargs or {}, output)
            except Exception as error:
                self._lost("how a loss is computed could not be heard", error)
                self.calls, self.lines, self.full = [], None, True
        return output

    def returned(self, call: int, output: Any) -> None:
        """By the model."""
        for path, tensor in leaves(output, is_tensor):
            self.outputs[self._slot(tensor)] = (call, path)

    def drop(self) -> None:
        self.start_over()
        self.full = True

    def start_over(self) -> None:
        self.full = False
        self.calls, self.outputs, self._slots, self.alive, self._storages = [], {}, {}, [], {}

    def tape(self, root: torch.Tensor) -> Tape | None:
        """What `root` was computed by; None where it was not heard."""
        number = self._slots.get(id(root))
        if self.full or number is None:
            return None
        calls = list(self._needed(number))[::-1]
        made = {slot for call in calls for slot in call.made}
        first = {slot for slot in made if slot in self.outputs or self._given_before_made(slot, calls)}
        wanted = {slot for call in calls for slot in call.given} | {number}
        tape = Tape(calls, {s: self.outputs[s] for s in wanted if s in self.outputs}, number)
        tape.single = frozenset(s for s in tape.outputs if self.alive[s].numel() == 1)
        tape.leaves = {s: None for s in wanted if s not in self.outputs and (s not in made or s in first)}
        tape.prepared = {s: None for s in made - self._depending(calls) if s not in tape.leaves and s in wanted}
        return tape

    def _depending(self, calls: list[Recorded]) -> set[int]:
        """What is made from what the model returned."""
        found = set(self.outputs)
        for call in calls:
            if found & set(call.given):
                found |= {*call.made, *(call.given if call.writes else ())}
        return found

    def _given_before_made(self, slot: int, calls: list[Recorded]) -> bool:
        """An op in place returns what it was given."""
        return any(slot in c.given for c in calls[: next(i for i, c in enumerate(calls) if slot in c.made) + 1])

    def _needed(self, root: int) -> Iterator[Recorded]:
        needed, storages = {root}, self._of(root)
        for call in reversed(self.calls):
            written = call.writes and any(self._of(slot) & storages for slot in call.given)
            if written or needed & set(call.made):
                needed |= set(call.given)
                storages = storages.union(*(self._of(slot) for slot in call.given))
                yield call

    def _of(self, slot: int) -> set[int]:
        return self._storages.get(slot, set())

    def _note(self, func: Any, args: Any, kwargs: Any, output: Any) -> None:
        made = tuple(self._slot(t) for _, t in leaves(output, is_tensor))
        if not made and name_of(func) != "__setitem__":
            return
        if len(self.calls) >= MOST_CALLS:
            self.drop()
            return
        given = [t for _, t in leaves([list(args), dict(kwargs)], is_tensor)]
        slots = tuple(map(self._slot, given))
        kept = [map_arrays(part, lambda t: Slot(self._slot(t)), is_tensor) for part in (tuple(args), dict(kwargs))]
        line = users_line(calling_frame())
        kind = given[0].device.type if given else "cpu"
        autocast = (kind, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None
        opaque = not all(map(_is_plain, (*kept[0], *kept[1].values())))
        self.calls.append(
            Recorded(func, kept[0], kept[1], slots, made, line, torch.is_grad_enabled(), autocast, opaque)
        )  # fmt: skip

    def _slot(self, tensor: torch.Tensor) -> int:
        number = self._slots.setdefault(id(tensor), len(self.alive))
        if number == len(self.alive):
            self.alive.append(tensor)
            if tensor.layout is torch.strided:
                self._storages[number] = {tensor.untyped_storage().data_ptr()}
        return number


def push(recorder: TapeRecorder) -> bool:
    """Not into the middle of other modes: the user's code would leave the wrong one. A device stands at the bottom by itself."""
    depth = torch._C._len_torch_function_stack()
    if depth > 1 or (depth == 1 and type(torch._C._get_function_stack_at(0)).__name__ != "DeviceContext"):
        return False
    torch._C._push_on_torch_function_stack(recorder)
    return True


def pull(recorder: TapeRecorder) -> None:
    """Wherever in the stack it stands by now."""
    above = []
    places = range(torch._C._len_torch_function_stack())
    if not any(torch._C._get_function_stack_at(place) is recorder for place in places):
        return
    while (top := torch._C._pop_torch_function_stack()) is not recorder:
        above.append(top)
    for mode in reversed(above):
        torch._C._push_on_torch_function_stack(mode)


def _unwatched(func: Any) -> Any:
    """torch hands on the function of that name, which may be a patch of ours: it has told everybody already."""
    ours = isinstance(func, FunctionType) and func.__code__.co_filename == patches.__file__
    return func.__wrapped__ if ours else func


def _is_slot(thing: Any) -> bool:
    return isinstance(thing, Slot)


def _is_plain(thing: Any) -> bool:
    if isinstance(thing, (Slot, *PLAIN)):
        return True
    if isinstance(thing, dict):
        return all(map(_is_plain, thing.values()))
    return isinstance(thing, list | tuple) and all(map(_is_plain, thing))
