"""Keeps what an examination after the end needs: the arrays that some of the steps were given, by reference, and what the first
one was given as a whole. Nothing is computed while the training runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from sleuth.adapters.common.reservoir import Reservoir
from sleuth.adapters.jax.watching.gradient_function import Learned, is_batch
from sleuth.adapters.jax.watching.inner_values import Inside
from sleuth.adapters.jax.watching.naming import STATES, leaves_of, name_of
from sleuth.adapters.jax.watching.rerun_nonfinite import needed_for
from sleuth.adapters.jax.watching.second_form import JIT, SecondForm

MOST_BYTES = 32 << 20


@dataclass
class Held:
    step: int
    values: list[Any]  # what is needed of what the step was given


@dataclass
class Source:
    """Where the batches of one compiled step come from: a program of what the step was given."""

    learned: Learned
    times: int  # batches that one call trains on; 0: one, and no loop
    whole: Callable[[list[Any]], list[Any]]  # everything that the function was given
    data: Callable[[list[Any]], list[Any]]
    needed: list[int]  # inputs that `data` needs
    places: tuple[int, ...]  # of its results among the inputs of the function
    size: int  # bytes of one call's batches


# A function, what it was called with, and which of that the gradient is taken by.
Taken = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]


@dataclass
class Passing:
    """What passed by at the door of one training."""

    source: Source | None = None
    first: tuple[int, list[Any]] | None = None
    first_loss: Any = None
    second: list[Any] | None = None  # what the step after it was given
    reservoir: Reservoir[Held] = field(default_factory=lambda: Reservoir(MOST_BYTES))
    shape: Any = None  # the kind of arguments that the source is for
    fed_anew: bool = True
    taken: Taken | None = None  # of the first step, where nothing is compiled around it
    names: tuple[tuple[str, ...], ...] = ()
    _calls: int = 0
    _before: tuple[int, list[Any]] | None = None  # the batch that was kept last, and its call
    _places: list[int] = field(default_factory=list)  # of batches among what an eager step is given

    def take(self, number: int, compiled: Any, given: Any) -> None:
        """Before the step is run: it may take the memory of what it is given."""
        self._calls += 1
        if (at := self.reservoir.wants()) is None:
            return
        form = compiled.form_for(given)
        if form is None or form.learned is None or (self.source is not None and form.learned is not self.source.learned):
            return
        inputs = form.inputs(given)
        if any(getattr(leaf, "is_deleted", lambda: False)() for leaf in inputs):
            return
        taken = not compiled.keeps_its_arguments
        if self.source is None:
            self.source = source_of(form, given)
            self.first = (number, [_safe(leaf, taken) for leaf in inputs])
        elif self.second is None and self.first is not None and number == self.first[0] + 1:
            self.second = [_safe(leaf, taken) for leaf in inputs]
        self._note_memory([inputs[i] for i in self.source.needed])
        self.reservoir.put(at, Held(number, [_safe(inputs[i], taken) for i in self.source.needed]), self.source.size)

    def take_eager(self, number: int, taken: Taken, names: tuple[tuple[str, ...], ...]) -> None:
        """The function is not called again before the end: what it does beside its result would be done twice."""
        self._calls += 1
        if (at := self.reservoir.wants()) is None:
            return
        leaves = [leaf for leaf in jax.tree.leaves((taken[1], taken[2])) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]
        kinds = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        if self.taken is None:
            weights = {id(leaf) for leaf in jax.tree.leaves(_chosen(taken))}
            self.taken, self.names, self.shape = taken, names, kinds
            self._places = [i for i, leaf in enumerate(leaves) if is_batch(leaf) and id(leaf) not in weights]
            self.first = (number, [_safe(leaf, False) for leaf in leaves])
            if not self._places:
                self.reservoir.close()
        elif self.second is None and self.first is not None and number == self.first[0] + 1 and kinds == self.shape:
            self.second = [_safe(leaf, False) for leaf in leaves]
        if kinds == self.shape and self._places:
            batch = [leaves[i] for i in self._places]
            self._note_memory(batch)
            self.reservoir.put(at, Held(number, [_safe(leaf, False) for leaf in batch]), sum(leaf.nbytes for leaf in batch))

    def eager_source(self) -> Source | None:
        """Now that the training is over."""
        if self.taken is None or self.first is None:
            return None
        inside = Inside(*self.taken)
        learned = inside.learned(self.names, None, everything=True)
        if learned is None:
            return None
        constants = len(learned[1]) - len(self.first[1])
        values = learned[1][:constants]
        places = tuple(i + constants for i in self._places)
        return Source(learned[0], 0, lambda first: [*values, *first], lambda held: held, [], places, 0)

    @property
    def held(self) -> list[Held]:
        """In the order of their steps."""
        return sorted(self.reservoir.items, key=lambda held: held.step)

    def _note_memory(self, batch: list[Any]) -> None:
        """Is a call given the very arrays of the one before? Then whoever wrote the loop may have no others."""
        batch = [array for array in batch if is_batch(array)]
        if batch and self._before is not None and self._before[0] == self._calls - 1:
            self.fed_anew &= [id(array) for array in batch] != [id(array) for array in self._before[1]]
        self._before = (self._calls, batch)  # held: an address may be given away again


def _chosen(taken: Taken) -> Any:
    _, args, _, argnums = taken
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def source_of(form: SecondForm, given: Any) -> Source:
    learned = form.learned
    assert learned is not None
    count = len(form.jaxpr.jaxpr.outvars)
    outputs = range(count - form.passed, count)
    named = [name_of(path, whole=True) for (path, _), d in zip(leaves_of(given), form.dynamic, strict=True) if d]
    times = max((part.times for part in form.parts), default=0)
    chosen = []
    for place, output in zip(learned.passed, outputs, strict=True):
        aval = form.jaxpr.jaxpr.outvars[output].aval
        made_of = _inputs_of(needed_for(form.jaxpr, [output]))
        states = made_of and all(STATES in named[i] for i in made_of)
        if place in learned.data and _is_batch(aval, times) and not states:
            chosen.append((place, output))
    ends = [output for _, output in chosen]
    alone = needed_for(form.jaxpr, ends)
    size = sum(form.jaxpr.jaxpr.outvars[o].aval.size * form.jaxpr.jaxpr.outvars[o].aval.dtype.itemsize for o in ends)
    needed = _inputs_of(alone)
    return Source(
        learned, times, _program(form, list(outputs)), _program(form, ends, needed), needed, tuple(p for p, _ in chosen), size
    )


def _program(form: SecondForm, outputs: list[int], needed: list[int] | None = None) -> Callable[[list[Any]], list[Any]]:
    from jax.extend.core import jaxpr_as_fun

    run = jaxpr_as_fun(needed_for(form.jaxpr, outputs))
    avals = [var.aval for var in form.jaxpr.jaxpr.invars]

    def whole(*inputs: Any) -> list[Any]:
        return list(run(*inputs))

    def part(*chosen: Any) -> list[Any]:
        waiting = dict(zip(needed or (), chosen, strict=True))
        return list(run(*(waiting[i] if i in waiting else _empty(aval) for i, aval in enumerate(avals))))

    compiled = JIT(whole if needed is None else part)
    return lambda inputs: compiled(*inputs)


def _empty(aval: Any) -> Any:
    """For an input that nothing of the result is made of."""
    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return jax.random.key(0) if not aval.shape else jax.random.split(jax.random.key(0), aval.shape)
    return jax.numpy.zeros(aval.shape, aval.dtype)


def _inputs_of(closed: Any) -> list[int]:
    used = {v for e in closed.jaxpr.eqns for v in e.invars if not hasattr(v, "val")}
    used |= {v for v in closed.jaxpr.outvars if not hasattr(v, "val")}
    return [i for i, var in enumerate(closed.jaxpr.invars) if var in used]


def _is_batch(aval: Any, times: int) -> bool:
    return is_batch(aval) and len(aval.shape) > (1 if times else 0)


def _safe(leaf: Any, taken: bool) -> Any:
    """Arrays of NumPy may be written to, and the step may take the memory of its arguments for itself."""
    if isinstance(leaf, np.ndarray) or (taken and is_batch(leaf)):
        return np.array(leaf)
    return leaf
