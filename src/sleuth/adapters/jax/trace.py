"""One traced forward and loss, with the names of what goes in and of what the model returned."""

from typing import TYPE_CHECKING, Any

import jax

from sleuth.adapters.jax.compile_effort import bodies
from sleuth.adapters.jax.layer_marks import SCOPE
from sleuth.adapters.jax.operation_reading import RANDOM
from sleuth.adapters.jax.program import Progress
from sleuth.adapters.jax.running import Static, joined, precision
from sleuth.adapters.jax.tape import Atom, Tape
from sleuth.core.errors import Unsupported

if TYPE_CHECKING:
    from sleuth.adapters.jax.bench import JaxBench


class Trace:
    def __init__(self, bench: "JaxBench", arrays: list[Any], static: Static, progress: Progress, *, alone: bool = False) -> None:
        """`alone`: the forward pass without the loss."""
        self.marks = progress.marks
        self.parameters = bench.flat_paths
        self.static = static
        self._programs = bench.programs
        flat, tree = jax.tree.flatten((bench.params, bench.rest, arrays))
        program, training = bench.program, bench.training

        def run(*leaves: Any) -> Any:
            params, rest, given = jax.tree.unflatten(tree, leaves)
            if alone or (program.loss is None and program.step is None):
                inputs, _ = joined(given, static)
                return program.forward(params, rest, inputs, training, self.marks)[0]
            return program.evaluate(params, rest, joined(given, static), training, self.marks, progress)[0]

        with precision(bench.wide):
            self.jaxpr = jax.make_jaxpr(run)(*flat)
            self.tape = Tape(self.jaxpr)
        count = len(self.parameters)
        self.weights = dict(zip(self.tape.inputs[:count], self.parameters, strict=True))
        self.batch = self.tape.inputs[len(flat) - len(arrays) :]
        self._rest = self.tape.inputs[count : len(flat) - len(arrays)]
        self.same: dict[int, Atom] = {}  # what a mark returned → what it was given
        self.returned: dict[int, list[Atom]] = {}  # call of a layer → what it returned
        for entry in self.tape.entries:
            if entry.name == "name":
                self.same[entry.outputs[0]] = self.real(entry.inputs[0])
                label = str(entry.equation.params["name"])
                if label.startswith(SCOPE):
                    self.returned.setdefault(int(label.removeprefix(SCOPE)), []).append(self.real(entry.inputs[0]))

    def real(self, atom: Atom) -> Atom:
        """Behind marks."""
        while isinstance(atom, int) and atom in self.same:
            atom = self.same[atom]
        return atom

    @property
    def value(self) -> Atom | None:
        """The loss."""
        return self.real(self.tape.outputs[0]) if self.tape.outputs else None

    def outputs(self) -> list[int]:
        """What the model as a whole returned, call by call."""
        roots = [v for v, visit in enumerate(self.marks.visits) if not visit.path]
        # The mark around the whole call and that of the root layer's own are of the same values.
        found = [atom for v in roots for atom in self.returned.get(v, ()) if isinstance(atom, int)]
        return list(dict.fromkeys(found))

    @property
    def repeats_dice(self) -> bool:
        """Are random numbers drawn that come from nothing which a call leaves for the next one?"""
        moving = set(self._rest)
        for entry in self.tape.entries:
            if moving.intersection(self.tape.sources(entry)):
                moving.update(entry.outputs)
            elif _draws(entry.equation):
                return True
        return False

    def values(self, bench: "JaxBench", arrays: list[Any], slots: list[int]) -> list[Any]:
        """Of these slots, computed in one go."""

        def run(params: Any, rest: Any, arrays: Any) -> list[Any]:
            computed = self.tape.evaluate(jax.tree.leaves((params, rest, arrays)))
            return [computed[slot] for slot in slots]

        key = ("values", id(self), tuple(slots))
        return self._programs.run(key, run, bench.params, bench.rest, arrays)

    def outputs_of_model(self, bench: "JaxBench", arrays: list[Any]) -> tuple[Any, ...]:
        slots = self.outputs()
        if not slots:
            raise Unsupported("step= does not call the model in a way that can be followed")
        return tuple(self.values(bench, arrays, slots))

    def reaching(self, ends: set[int], without: frozenset[int] = frozenset()) -> set[int]:
        """The arrays of the batch that these values are made of, on ways that do not lead through `without`."""
        wanted = set(ends)
        for entry in reversed(self.tape.entries):
            if any(slot in wanted and slot not in without for slot in entry.outputs):
                wanted |= {atom for atom in entry.inputs if isinstance(atom, int)}
        return wanted & set(self.batch)


def _draws(equation: Any) -> bool:
    inner = [body for value in equation.params.values() for body in bodies(value)]
    return equation.primitive.name in RANDOM or any(_draws(each) for body in inner for each in body.eqns)
