"""The operations of a forward pass as a user would count them: a layer of the library or a known function is one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sleuth.adapters.jax.known_functions import BIASED, function_reading, layer_reading
from sleuth.adapters.jax.operation_reading import RANDOM, Reading, read
from sleuth.adapters.jax.tape import Entry
from sleuth.adapters.jax.trace import Trace
from sleuth.adapters.jax.words import WHOLE, family_of
from sleuth.core.trial import Operation

Key = tuple[str, int]


@dataclass(frozen=True)
class Made:
    """An operation, what holds its result, and what it was made with."""

    operation: Operation
    slot: int
    activation: str = ""
    given: tuple[int, ...] = ()  # data that went in


class Operations:
    """Every value is data (it comes from the batch), a weight (made of parameters alone) or a constant."""

    def __init__(self, trace: Trace, *, inputs: list[tuple[str, int]]) -> None:
        self.trace = trace
        self.made: list[Made] = []
        self._by: dict[int, int] = {}  # data, by slot → the operation that made it
        self._weights = {slot: frozenset({path}) for slot, path in trace.weights.items()}
        self._uses = self._count_uses()
        for path, slot in inputs:
            self._add(Made(Operation(path or "input", "input", (), trace.tape.shapes[slot]), slot), [slot])
        for entries in self._groups():
            self._note(entries)

    def _count_uses(self) -> dict[int, int]:
        uses: dict[int, int] = {}
        for entry in self.trace.tape.entries:
            if entry.name != "name":
                for atom in entry.inputs:
                    if isinstance(real := self.trace.real(atom), int):
                        uses[real] = uses.get(real, 0) + 1
        return uses

    def _groups(self) -> Iterator[list[Entry]]:
        group: list[Entry] = []
        last: Key | None = None
        for entry in self.trace.tape.entries:
            if entry.name == "name":
                continue
            key = self._key(entry)
            if group and (key is None or key != last):
                yield group
                group = []
            group.append(entry)
            last = key
        if group:
            yield group

    def _key(self, entry: Entry) -> Key | None:
        visits = self.trace.marks.visits
        whole = next((v for v in entry.visits if family_of(visits[v].module) in WHOLE), None)
        if whole is not None:
            return "layer", whole
        return ("function", entry.number) if entry.function else None

    def _note(self, entries: list[Entry]) -> None:
        inside = {slot for entry in entries for slot in entry.outputs}
        given = [s for e in entries for a in e.inputs if isinstance(s := self.trace.real(a), int) and s not in inside]
        data = list(dict.fromkeys(s for s in given if s in self._by))
        made = [slot for entry in entries for slot in entry.outputs]
        if not data:
            self._no_data(entries, given, made)
            return
        weights = list(dict.fromkeys(s for s in given if s in self._weights))
        key = self._key(entries[0])
        slot = self._result(entries, key)
        if key is None:
            self._single(entries[0], data, weights, slot)
        else:
            self._whole(entries, key, data, weights, slot, made)

    def _no_data(self, entries: list[Entry], given: list[int], made: list[int]) -> None:
        roots = frozenset().union(*(self._weights.get(s, frozenset()) for s in given))
        if roots:
            self._weights.update({slot: roots for slot in made})
        elif any(entry.name in RANDOM for entry in entries):
            entry = entries[-1]
            shape = self.trace.tape.shapes[entry.outputs[0]]
            self._add(Made(Operation(entry.name, "input", (), shape, location=entry.location), made[-1]), made)

    def _result(self, entries: list[Entry], key: Key | None) -> int:
        """Of a layer what it returned; else what came last and is used elsewhere."""
        inside = {slot for entry in entries for slot in entry.outputs}
        if key is not None and key[0] == "layer":
            told = [a for a in self.trace.returned.get(key[1], ()) if isinstance(a, int) and a in inside]
            if told:
                return told[0]
        within: dict[int, int] = {}
        for entry in entries:
            for atom in entry.inputs:
                if isinstance(real := self.trace.real(atom), int):
                    within[real] = within.get(real, 0) + 1
        leaving = [s for e in entries for s in e.outputs if self._uses.get(s, 0) > within.get(s, 0)]
        shapes = self.trace.tape.shapes
        largest = max((len(shapes[s]) for s in leaving), default=0)
        return next((s for s in reversed(leaving) if len(shapes[s]) == largest), entries[-1].outputs[0])

    def _single(self, entry: Entry, data: list[int], weights: list[int], slot: int) -> None:
        places = [self.trace.real(atom) for atom in entry.inputs]
        real = replace(entry, inputs=tuple(places))
        reading = read(
            self.trace.tape,
            real,
            [i for i, s in enumerate(places) if s in data],
            [i for i, s in enumerate(places) if s in weights],
        )
        if entry.name in ("add", "add_any") and self._is_bias(data, weights, slot):
            self._join_bias(data[0], weights, slot)
            return
        self._add(self._operation(reading.activation or entry.name, reading, [entry], data, weights, slot), entry.outputs)

    def _is_bias(self, data: list[int], weights: list[int], slot: int) -> bool:
        if len(data) != 1 or len(weights) != 1:
            return False
        before = self.made[self._by[data[0]]]
        shapes = self.trace.tape.shapes
        out = before.operation.settings.get("out")
        fits = int(max(shapes[weights[0]], default=0)) == out and shapes[data[0]] == shapes[slot]
        alone = self._uses.get(data[0], 0) == 1 and before.slot == data[0]
        return before.operation.family in BIASED and fits and alone and not before.operation.settings.get("bias")

    def _join_bias(self, data: int, weights: list[int], slot: int) -> None:
        at = self._by[data]
        before = self.made[at]
        operation = replace(
            before.operation,
            parameters=(*before.operation.parameters, *self._names(weights)),
            settings={**before.operation.settings, "bias": True},
        )
        self.made[at] = replace(before, operation=operation, slot=slot)
        self._by[slot] = at

    def _whole(self, entries: list[Entry], key: Key, data: list[int], weights: list[int], slot: int, made: list[int]) -> None:
        tape = self.trace.tape
        if key[0] == "layer":
            visit = self.trace.marks.visits[key[1]]
            name, reading = type(visit.module).__name__, layer_reading(tape, visit.module, entries, slot)
        else:
            name, reading = entries[0].function, function_reading(entries)
        self._add(self._operation(name, reading, entries, data, weights, slot), made)

    def _operation(
        self, name: str, reading: Reading, entries: list[Entry], data: list[int], weights: list[int], slot: int
    ) -> Made:
        entry = entries[-1]
        parameters = self._names(weights)
        place = next((e.location for e in reversed(entries) if e.location is not None), None)
        operation = Operation(
            name=name,
            family=reading.family,
            sources=tuple(dict.fromkeys(self._by[s] for s in data)),
            shape=self.trace.tape.shapes[slot],
            layer=self._layer(entry, parameters if reading.family in BIASED else ()),
            parameters=parameters,
            settings=reading.settings,
            location=place,
            axes=reading.axes,
        )
        return Made(operation, slot, reading.activation, tuple(data))

    def _layer(self, entry: Entry, parameters: tuple[str, ...]) -> str:
        """The layer that was called; of plain functions the place of the weights in their tree stands for it."""
        visits = self.trace.marks.visits
        whole = next((v for v in entry.visits if family_of(visits[v].module) in WHOLE), None)
        if whole is not None:
            return visits[whole].path
        inner = next((visits[v].path for v in reversed(entry.visits)), "")
        if inner or not parameters:
            return inner
        return parameters[0].rpartition(".")[0] or parameters[0]

    def _names(self, weights: list[int]) -> tuple[str, ...]:
        ranked = sorted(weights, key=lambda slot: -len([n for n in self.trace.tape.shapes[slot] if n > 1]))
        return tuple(dict.fromkeys(name for slot in ranked for name in sorted(self._weights[slot])))

    def _add(self, made: Made, slots: Any) -> None:
        self.made.append(made)
        self._by.update({slot: len(self.made) - 1 for slot in slots})

    def maker(self, slot: int) -> int | None:
        return self._by.get(slot)
