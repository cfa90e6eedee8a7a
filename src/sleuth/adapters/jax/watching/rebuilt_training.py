"""What was kept of a training, as something that can be examined: the function of its gradient, parted into model and loss, with
the weights of the first step."""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.bounds import Bounds
from sleuth.adapters.jax.indicators import indicators, look
from sleuth.adapters.jax.tape import Tape
from sleuth.adapters.jax.watching.asked_inputs import AskedInputs
from sleuth.adapters.jax.watching.gradient_function import Learned, is_batch
from sleuth.adapters.jax.watching.second_form import JIT
from sleuth.adapters.jax.watching.seen_batches import Passing, Source
from sleuth.adapters.jax.watching.shifted_targets import cut_apart
from sleuth.adapters.jax.watching.split_model_loss import Division, divided, from_output, to_output
from sleuth.core.contract.kept import Kept, Passed
from sleuth.core.errors import Unsupported
from sleuth.core.observation import OutOfRange
from sleuth.core.subject import Parts, Subject

# Numbers in all weights: larger models take too long to be trained once more at the end.
SMALL = 4_000_000
# Sums in another order.
ROUNDING = 1e-3
# Of what a step moved: more is left where something else than descent at one rate made it.
PLAIN = 1e-2


def kept(passing: Passing, optimiser: Any, asked: AskedInputs | None = None) -> Kept | None:
    with redirect_stdout(io.StringIO()):  # a function that was not compiled is traced here, and may speak
        source, first = passing.source or passing.eager_source(), passing.first
    if source is None or first is None or not passing.held:
        return None
    base = _base(source, first[1])
    batches = list(_batches(passing, source))
    if not batches:
        return None
    learned, cuts = cut_apart(source.learned, tuple(batches[0][1]))
    for cut in cuts:
        base += cut.of(base[cut.whole])
        for _, found in batches:
            found.update(zip(cut.parts, cut.of(found[cut.whole]), strict=True))
    division = _division(learned, batches[0][1], base)
    if division is None:
        return None
    roles = Roles.of(division, learned)
    train = [Passed(step, roles.parts(base, found)) for step, found in batches]
    again = Again(learned, division, roles, base)
    reason = again.obstacle(_number(passing.first_loss), train[0].parts)
    small = sum(np.size(base[i]) for i in learned.weights) <= SMALL
    if optimiser is None and not reason and (second := _second(passing, source)):
        # A likelihood or a reward is climbed on purpose; a loss of answers and targets that is above zero is not.
        optimiser = again.rate(second, climbs=again.is_plain and (_number(passing.first_loss) or 0.0) > 0)
    loss, step = (None, None) if reason else (again.loss, None) if again.is_plain else (None, again.step)
    return Kept(
        Subject((again.apply, again.tree()), None, loss, optimiser, step=step),
        _of_one_size(train),
        # Samples that differ in their last element alone have equal inputs here: they must not be compared with validation.
        () if asked is None or cuts else asked.groups(train[0].parts),
        fed_anew=passing.fed_anew,
        at_start=not reason,
        forbidden="" if small else "the model is too large to be called once more at the end",
        remarks=(reason,) if reason else (),
        noted=() if reason else tuple(_looked_up(learned, base, [found for _, found in batches])),
        batch_size=_samples(train[0]),
    )


def _looked_up(learned: Learned, base: list[Any], batches: list[dict[int, np.ndarray]]) -> Iterator[OutOfRange]:
    tape = Tape(learned.closed)
    weights = {tape.inputs[place]: ".".join(name) for place, name in zip(learned.weights, learned.names, strict=True)}
    bounds = Bounds(tape, weights, [tape.inputs[place] for place in batches[0]], JIT)
    given = [[found.get(place, value) for place, value in enumerate(base)] for found in batches]
    yield from bounds.look(given)
    yield from look(tape, indicators(tape, weights, [tape.inputs[place] for place in batches[0]]), given, JIT)


def _base(source: Source, first: list[Any]) -> list[Any]:
    """Of every input of the function, its value at the first step."""
    learned = source.learned
    values: list[Any] = [None] * len(learned.closed.jaxpr.invars)
    for place, value in learned.fixed.items():
        values[place] = value
    for place, value in zip(learned.passed, source.whole(first), strict=True):
        values[place] = value[0] if source.times else value
    return values


def _second(passing: Passing, source: Source) -> list[Any]:
    """The weights of the second step, where they are still there."""
    given = passing.second
    if given is None or any(getattr(leaf, "is_deleted", lambda: False)() for leaf in given):
        return []
    values = dict(zip(source.learned.passed, source.whole(given), strict=True))
    return [values[place] for place in source.learned.weights]


def _batches(passing: Passing, source: Source) -> Iterator[tuple[int, dict[int, np.ndarray]]]:
    for held in passing.held:
        try:
            found = [to_numpy(a) for a in source.data(held.values)]
        except RuntimeError:  # its memory was taken
            continue
        if not source.times:
            yield held.step, dict(zip(source.places, found, strict=True))
            continue
        for t in range(source.times):
            yield held.step + t, {place: array[t] for place, array in zip(source.places, found, strict=True)}


def _division(learned: Learned, batch: dict[int, np.ndarray], base: list[Any]) -> Division | None:
    fixed = {place: value for place, value in learned.fixed.items() if is_batch(value)}
    found = {**fixed, **batch}
    size = Counter(n for a in found.values() for n in [a.shape[0]] * (2 if len(a.shape) > 1 else 1)).most_common(1)
    data = [place for place, array in found.items() if array.shape[0] == size[0][0]] if size else []
    return divided(learned.closed.jaxpr, learned.weights, data)


@dataclass(frozen=True)
class Roles:
    inputs: tuple[int, ...]
    target: int | None

    @classmethod
    def of(cls, division: Division, learned: Learned) -> "Roles":
        beside = [p for p in division.targets if p not in division.inputs]
        shape = division.output.aval.shape
        variables = learned.closed.jaxpr.invars
        fits = [p for p in beside if variables[p].aval.shape in (shape, shape[:-1])]
        own = [p for p in division.targets if p in division.inputs]
        target: int | None = next(iter([*fits, *beside, *own]), None)
        # What else the loss is given goes along with the inputs, and the model passes it over.
        others = tuple(p for p in beside if p != target)
        return cls((*division.inputs, *others), target)

    def parts(self, base: list[Any], found: dict[int, np.ndarray]) -> Parts:
        arrays = [to_numpy(found[place] if place in found else base[place]) for place in self.inputs]
        inputs = arrays[0] if len(arrays) == 1 else tuple(arrays)
        goal = self.target
        target = None if goal is None else to_numpy(found[goal] if goal in found else base[goal])
        return Parts(inputs, target, (inputs, target))


class Again:
    def __init__(self, learned: Learned, division: Division, roles: Roles, base: list[Any]) -> None:
        self._learned, self._roles, self._base = learned, roles, base
        self._shape = tuple(division.output.aval.shape)
        self._size = base[roles.inputs[0]].shape[0]
        self._model = to_output(learned.closed.jaxpr, division)
        self._loss, needed = from_output(learned.closed.jaxpr, division)
        # As one program: by itself each operation would be compiled alone.
        self._whole = JIT(lambda given: self._loss(self._model(*given)[0], *given)[0])
        own = {*learned.weights, *(p for p in roles.inputs if p != roles.target)}
        self.is_plain = roles.target is not None and not needed & own

    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for (*parents, last), place in zip(self._learned.names, self._learned.weights, strict=True):
            branch = tree
            for parent in parents:
                branch = branch.setdefault(parent, {})
            branch[last] = self._base[place]
        return tree

    def apply(self, params: Any, *inputs: Any) -> Any:
        """The model."""
        output = self._model(*self._given(params, inputs))[0]
        few = inputs[0].shape[0]
        if few == self._size:
            return output
        if not output.shape or output.shape[0] != self._size:
            raise Unsupported("which samples the answers belong to cannot be told")
        return output[:few]

    def loss(self, output: Any, target: Any) -> Any:
        return self._loss(_tiled(output, self._shape), *self._given(None, (), target))[0]

    def step(self, model: Any, raw: Sequence[Any]) -> Any:
        apply, params = model
        inputs, target = self._sides(raw)
        output = _tiled(apply(params, *inputs), self._shape)
        return self._loss(output, *self._given(params, inputs, target))[0]

    def _sides(self, raw: Any) -> tuple[list[Any], Any]:
        arrays, count = jax.tree.leaves(raw), len(self._roles.inputs)
        return arrays[:count], arrays[count] if len(arrays) > count else None

    def _given(self, params: Any, inputs: Sequence[Any], target: Any = None) -> list[Any]:
        given = list(self._base)
        if params is not None:
            for name, place in zip(self._learned.names, self._learned.weights, strict=True):
                given[place] = _at(params, name)
        for place, array in zip(self._roles.inputs, inputs, strict=False):
            given[place] = _tiled(array, tuple(self._base[place].shape))
        if self._roles.target is not None and target is not None:
            given[self._roles.target] = _tiled(target, tuple(self._base[self._roles.target].shape))
        return given

    def rate(self, after: list[Any], *, climbs: bool = False) -> float | None:
        """Of plain descent, if that is what made the second step's weights of the first's; `climbs`: or of the reverse."""
        weights = self._learned.weights
        before = [self._base[i] for i in weights]

        def value(own: list[Any]) -> Any:
            given = list(self._base)
            for place, array in zip(weights, own, strict=True):
                given[place] = array
            return self._loss(self._model(*given)[0], *given)[0]

        gradient = np.concatenate([np.ravel(g) for g in JIT(jax.grad(value))(before)])
        moved = np.concatenate([np.ravel(to_numpy(a) - to_numpy(b)) for a, b in zip(after, before, strict=True)])
        rate = -float(moved @ gradient) / max(float(gradient @ gradient), float(np.finfo(np.float32).tiny))
        rest = np.linalg.norm(moved + rate * gradient)
        return rate if (rate > 0 or (climbs and rate < 0)) and rest <= PLAIN * np.linalg.norm(moved) else None

    def obstacle(self, first: float | None, parts: Parts) -> str:
        """Why experiments with what was put together would tell of another training."""
        given = self._given(None, *self._sides(parts.raw))
        try:
            again = float(self._whole(given))
        except Exception as error:
            return f"the loss of the first batch could not be computed again: {type(error).__name__}: {error}"
        if first is not None and not np.isfinite(first) and not np.isfinite(again):
            return ""
        if first is None:  # a step may keep it to itself
            return ""
        if not abs(again - first) <= ROUNDING * abs(first):
            return f"computed again, the loss of the first batch is {again:.6g}, and it was {first}: something else goes into it"
        return ""


def _tiled(array: Any, wanted: tuple[int, ...]) -> Any:
    """The function was traced for one size of batch. A few samples go in as often as they fit: their mean stays what it is."""
    shape = tuple(array.shape)
    if shape == wanted:
        return array
    if shape[1:] != wanted[1:] or not shape or not shape[0] or wanted[0] % shape[0]:
        raise Unsupported(f"the step was traced for arrays of shape {wanted}, and for none of {shape}")
    return jnp.concatenate([array] * (wanted[0] // shape[0]))


def _at(tree: Any, name: tuple[str, ...]) -> Any:
    for word in name:
        tree = tree[word]
    return tree


def _number(loss: Any) -> float | None:
    try:
        return float(np.asarray(loss).reshape(()))
    except (TypeError, ValueError):
        return None


def _samples(passed: Passed) -> int:
    inputs = passed.parts.inputs
    return int((inputs[0] if isinstance(inputs, tuple) else inputs).shape[0])


def _of_one_size(train: list[Passed]) -> list[Passed]:
    return [p for p in train if _samples(p) == _samples(train[0])]
