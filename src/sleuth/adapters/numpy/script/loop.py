"""The loop of the script whose body is one step, and everything that its body can reach: enough to do a step again."""

import ast
from collections.abc import Iterator, Mapping
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from sleuth.adapters.numpy.script.slots import Event
from sleuth.adapters.numpy.state import reach
from sleuth.core.runtime.place import is_users

# Steps that are followed to find it.
MOST_STEPS = 4
# Objects that are looked into for weights.
MOST_OBJECTS = 20_000

Place = tuple[Any, Any]  # what holds an array (a dict or list), and under which key


class Loop(NamedTuple):
    code: CodeType
    space: dict[str, Any]  # names of the loop's scope, as they were when a step was over
    globals: dict[str, Any]
    in_globals: bool  # the body runs in its module's own names
    places: Mapping[str, list[Place]]  # of the weights
    lists: list[tuple[Any, Any, Any]]  # (holder, key, list or dict of weights): many a step makes a new one
    order: tuple[tuple[int, str], ...]  # (statement, weight) as a step updates them


class LoopFinder:
    """Told of the updates and losses of a few steps in a row. `trees`: of the user's files, with our calls in them."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees
        self._steps = 0
        self._begin_step()
        self._previous: list[FrameType] = []
        self.loop: Loop | None = None
        self.reason = "the loop around its steps was not found"

    @property
    def is_done(self) -> bool:
        return self.loop is not None or self._steps >= MOST_STEPS

    def _begin_step(self) -> None:
        self._stacks: list[dict[FrameType, int]] = []
        self._events: list[tuple[str, Event]] = []
        self._told: dict[int, dict[FrameType, int]] = {}

    def told(self, number: int, frame: FrameType) -> None:
        if not self._events:  # after the first update it is the loss of other weights
            self._told[number] = _stack(frame)

    def updated(self, name: str, event: Event, frame: FrameType) -> None:
        self._stacks.append(_stack(frame))
        self._events.append((name, event))

    def step_over(self, chosen: int | None) -> None:
        """`chosen`: the statement that tells the step's loss."""
        self._steps += 1
        try:
            self._look(chosen)
        finally:
            self._begin_step()
            if self.is_done:
                self._previous = []

    def _look(self, chosen: int | None) -> None:
        loss = self._told.get(-1 if chosen is None else chosen)
        if loss is None:
            self.reason = "no loss is computed in a step before its weights are updated"
            return
        stacks = [*self._stacks, loss]
        common = [frame for frame in stacks[0] if all(frame in other for other in stacks)]  # the innermost first
        outer = next((frame for frame in common if frame in self._previous), None)
        self._previous = common
        if outer is not None:
            self.loop = self._made(outer, {other[outer] for other in stacks})

    def _made(self, frame: FrameType, lines: set[int]) -> Loop | None:
        tree = self._trees.get(frame.f_code.co_filename)
        body = None if tree is None else _innermost(tree, lines)
        if tree is None or body is None:
            return None
        try:
            code = compile(_once(body), frame.f_code.co_filename, "exec", dont_inherit=True)
        except SyntaxError:  # it returns or yields
            self.reason = "its steps end by leaving the function that they stand in"
            return None
        is_module = frame.f_code.co_name == "<module>"
        space = dict(frame.f_locals)
        wanted = {name: (event.before, event.after) for name, event in self._events if event.before.shape}
        places = _places(wanted, space, frame.f_globals)
        if set(places) != set(wanted):
            self.reason = "where the script keeps its weights was not found"
            return None
        writes = any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(tree))
        order = tuple((event.slot.site, name) for name, event in self._events)
        lists = _lists(places, space, frame.f_globals)
        return Loop(code, space, frame.f_globals, is_module or writes, places, lists, order)


def _stack(frame: FrameType | None) -> dict[FrameType, int]:
    """The user's own frames with their lines, the innermost first."""
    found: dict[FrameType, int] = {}
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found[frame] = frame.f_lineno
        frame = frame.f_back
    return found


def _innermost(tree: ast.Module, lines: set[int]) -> list[ast.stmt] | None:
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While) and n.body[0].lineno <= min(lines)]
    around = [n for n in loops if max(lines) <= (n.body[-1].end_lineno or 0)]
    return min(around, key=lambda n: (n.end_lineno or 0) - n.lineno).body if around else None


def _once(body: list[ast.stmt]) -> ast.Module:
    """In a loop of one turn: `continue` and `break` mean what they meant."""
    turn = ast.For(ast.Name("__sleuth_turn__", ast.Store()), ast.Tuple([ast.Constant(0)], ast.Load()), body, [])
    return ast.fix_missing_locations(ast.Module([ast.copy_location(turn, body[0])], []))


def _places(wanted: Mapping[str, tuple[np.ndarray, np.ndarray]], *spaces: dict[str, Any]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for thing in islice(reach(*spaces), MOST_OBJECTS):
        for holder in _holders(thing):
            for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
                if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                    for name in (n for n, values in wanted.items() if _is_weight(n, key, value, values)):
                        found.setdefault(name, []).append((holder, key))
    return found


def _lists(places: Mapping[str, list[Place]], *spaces: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    wanted = {id(holder) for found in places.values() for holder, _ in found}
    things = (holder for thing in islice(reach(*spaces), MOST_OBJECTS) for holder in _holders(thing))
    return [
        (holder, key, value)
        for holder in things
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder))
        if id(value) in wanted and isinstance(value, dict | list)
    ]


def _holders(thing: Any) -> Iterator[Any]:
    if isinstance(thing, dict | list):
        yield thing
    elif isinstance(held := getattr(thing, "__dict__", None), dict):
        yield held


def _is_weight(name: str, key: Any, value: np.ndarray, values: tuple[np.ndarray, np.ndarray]) -> bool:
    if value.shape != values[0].shape:
        return False
    same = any(np.array_equal(value, known) for known in values)
    # Of zeros there are many.
    return same and (bool(value.any()) or str(key) == name.rpartition(".")[2])
