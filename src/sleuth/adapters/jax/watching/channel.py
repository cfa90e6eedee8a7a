"""What a second executable returns beside the user's own result: statistics (or, on the host, what they are computed of), and
what each row of them speaks of."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax

from sleuth.adapters.jax.watching import measuring
from sleuth.adapters.jax.watching.gradient_function import Learned
from sleuth.adapters.jax.watching.inner_values import Story, Telling, spoken
from sleuth.adapters.jax.watching.measuring import changes, measure
from sleuth.adapters.jax.watching.naming import Path, is_weight, leaves_of, name_of, users_line, weight_places
from sleuth.core.location import Location

GRADIENT, UPDATE = "gradient", "update"


@dataclass(frozen=True)
class Lane:
    """What is trained together, told by names, shapes and dtypes."""

    names: tuple[tuple[str, ...], ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(".".join(name) for name in self.names)


@dataclass(frozen=True)
class Part:
    """One gradient that was taken, or one update that was applied. Static: it travels with the compiled step."""

    kind: str
    lane: Lane
    places: tuple[int, ...] = ()  # of the weights among the inputs of the step
    loss: Path | None = None  # of the loss in what the step returns
    single: bool = False  # by one array alone, and not the first of several arguments: by its input, it may be
    times: int = 0  # rounds of the loop that it is taken in; 0: in none
    place: Location | None = None  # the user's line that applies an update

    @property
    def is_gradient(self) -> bool:
        return self.kind == GRADIENT


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Channel:
    """`values`: of each part the loss (or None), sizes and counts as `measuring.measure` returns them; or the arrays that are
    to be measured, and None."""

    parts: tuple[Part, ...]
    values: tuple[Any, ...]
    lr: Any = None
    count: Any = None  # of the steps that the optimiser remembers; a form of the step knows which input that is
    telling: Telling | None = None
    story: Story | None = None  # of what was said inside
    passed: tuple[Any, ...] = ()  # what the function was given that the first gradient is taken of
    learned: Learned | None = None  # that function

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (self.values, self.lr, self.count, self.telling, self.passed), (self.parts, self.story, self.learned)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], children: tuple[Any, ...]) -> "Channel":
        values, lr, count, telling, passed = children
        return cls(static[0], values, lr, count, telling, static[1], passed, static[2])

    def measured(self) -> "Channel":
        """Waits for the arrays that are to be measured on the host, and lets them go."""
        values = tuple(v if v[2] is not None else (v[0], *measuring.measure_here(v[1])) for v in self.values)
        return replace(self, values=values, telling=None if self.telling is None else spoken(self.story, self.telling))


@dataclass
class Heard:
    part: Part
    loss: Any  # the very value that the user was given
    arrays: list[Any] = field(default_factory=list)  # to be measured
    measured: tuple[Any, Any, Any] | None = None  # of an inner step, already


class Collector:
    """What is heard while one second executable is traced. Values of a trace within (vmap, scan) cannot be returned from it."""

    def __init__(self, inputs: list[tuple[Path, Any]]) -> None:
        self._inputs = inputs
        self._trace = next((t for _, leaf in inputs if (t := getattr(leaf, "_trace", None)) is not None), None)
        self._heard: list[Heard] = []
        self.lr: Any = next((leaf for path, leaf in inputs if _is_rate(path, leaf)), None)
        self._told: tuple[Story, Telling] | None = None
        self._learned: tuple[Learned, list[Any]] | None = None
        self.optimiser: Any = None  # whose updates are applied
        self.taken_at: Location | None = None  # the line that takes the first gradient
        self.asked_at: Location | None = None  # the line that asks an optimiser for updates
        self.begun: tuple[Any, Location] | None = None  # the update function of an optimiser whose state begins inside, and where
        self.out_of_reach = 0

    def gradient(self, lane: Lane, weights: list[Any], loss: Any, gradients: list[Any], *, single: bool) -> None:
        if self._reaches([loss, *gradients]):
            self.taken_at = self.taken_at or users_line()
            part = Part(GRADIENT, lane, weight_places(lane.names, weights, self._inputs), single=single)
            self._heard.append(Heard(part, loss, [*gradients, *weights]))

    def inside(self, told: tuple[Story, Telling]) -> None:
        """Of the first gradient of the step."""
        if self._told is None and self._reaches(jax.tree_util.tree_leaves(told[1])):
            self._told = told

    def learn(self, found: tuple[Learned, list[Any]] | None) -> None:
        """The function of the first gradient, and what it was given."""
        if found is not None and self._learned is None and self._reaches(found[1]):
            self._learned = found

    def update(self, lane: Lane, before: list[Any], after: list[Any]) -> None:
        if self._reaches(after):
            self._heard.append(Heard(Part(UPDATE, lane, place=users_line()), None, changes(before, after)))

    def nested(self, channel: Channel, inner: tuple[Any, ...]) -> None:
        """`inner`: the losses that an inner step returned, as the user has them."""
        for part, values, loss in zip(channel.parts, channel.values, inner, strict=True):
            if not self._reaches(jax.tree_util.tree_leaves(values)):
                continue
            outer = Part(part.kind, part.lane, single=part.single, times=part.times, place=part.place)
            raw = values[2] is None
            self._heard.append(Heard(outer, loss, list(values[1])) if raw else Heard(outer, loss, measured=values))
        if channel.story is not None and channel.telling is not None:
            self.inside((channel.story, channel.telling))
        if channel.learned is not None:
            self.learn((channel.learned, list(channel.passed)))

    def scanned(self, channel: Channel, losses: tuple[Any, ...]) -> None:
        """Of a loop, whose rounds stand along the first axis of everything. `losses`: as the user has them."""
        within = any(part.times for part in channel.parts)
        for part, values, loss in zip(channel.parts, channel.values, losses, strict=True):
            values = tuple(_in_a_row(value) if part.times else value for value in values)
            known = [value for value in values if value is not None]
            if known and self._reaches(known):
                places = weight_places(part.lane.names, _like(part.lane), self._inputs) if part.kind == GRADIENT else ()
                outer = replace(part, places=places, times=int(known[0].shape[0]))
                self._heard.append(Heard(outer, loss if loss is not None else values[0], measured=values))
        if channel.learned is not None:
            self.learn((channel.learned, [_in_a_row(array) if within else array for array in channel.passed]))

    def channel(self, output: Any, *, here: bool) -> Channel:
        """`here`: the arrays are returned as they are, and measured on the host."""
        # What is computed for us must not be fused into what the user computes: that could change its last bits.
        raw = jax.lax.optimization_barrier([array for heard in self._heard for array in heard.arrays])
        measured = measure(raw) if raw and not here else None
        values, begin = [], 0
        places = {id(leaf): path for path, leaf in reversed(leaves_of(output))}
        parts = tuple(replace(h.part, loss=places.get(id(h.loss)) if h.loss is not None else None) for h in self._heard)
        for heard in self._heard:
            if heard.measured is not None:
                values.append(heard.measured)
                continue
            end = begin + len(heard.arrays)
            told = (tuple(raw[begin:end]), None) if measured is None else tuple(rows[begin:end] for rows in measured)
            values.append((heard.loss, *told))
            begin = end
        if not parts:
            return Channel(parts, tuple(values))
        story, telling = (None, None) if self._told is None else self._told
        known, passed = (None, []) if self._learned is None else self._learned
        return Channel(parts, tuple(values), self.lr, None, telling, story, tuple(passed), known)

    def _reaches(self, leaves: list[Any]) -> bool:
        """Of this very trace, or plain values."""
        within = [t for leaf in leaves if (t := getattr(leaf, "_trace", None)) is not None]
        reached = all(trace is self._trace for trace in within)
        self.out_of_reach += not reached
        return reached


def _in_a_row(rounds: Any) -> Any:
    """Of a loop inside a loop."""
    return None if rounds is None else rounds.reshape(-1, *rounds.shape[2:])


def lane_of(tree: Any) -> tuple[Lane, list[Any], list[bool]]:
    """The floating leaves of a tree, and which of all leaves they are."""
    flat = leaves_of(tree)
    chosen = [is_weight(leaf) for _, leaf in flat]
    weights = [(path, leaf) for (path, leaf), wanted in zip(flat, chosen, strict=True) if wanted]
    names = tuple(name_of(path) for path, _ in weights)
    if len({*names}) < len(names):  # of several models that have layers of the same names
        names = tuple((*name_of(path[:1]), *name) for (path, _), name in zip(weights, names, strict=True))
    lane = Lane(names, tuple(tuple(w.shape) for _, w in weights), tuple(str(w.dtype) for _, w in weights))
    return lane, [leaf for _, leaf in weights], chosen


def _like(lane: Lane) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in zip(lane.shapes, lane.dtypes, strict=True)]


def _is_rate(path: Path, leaf: Any) -> bool:
    """As optax.inject_hyperparams keeps it in the optimiser's state."""
    return bool(path) and getattr(path[-1], "key", None) == "learning_rate" and getattr(leaf, "shape", None) == ()
