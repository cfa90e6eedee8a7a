"""Which line made an array: the user's lines are followed one by one while a pass is done again on the copy.

Names tell little (`nabla_w[-l]`, a wrapper around the real function); that a value was not there before a line and is there
after it tells it for any way of writing.
"""

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

# Lines that are followed; a convolution by loops over pixels has more than anybody needs to see.
MOST_LINES = 20_000
# Of larger arrays only some entries are compared.
COMPARED = 4096
# Of the largest entry: what a weight was changed by is known to some digits less than the gradient itself.
SAME = 1e-6


@dataclass(frozen=True)
class Birth:
    """An array that a line made, or changed in place."""

    order: int
    file: str
    line: int
    shape: tuple[int, ...]
    values: np.ndarray  # some of them
    used: dict[str, int] = field(default_factory=dict)  # ids of the arrays that the line's names stood for


class Births:
    def __init__(self) -> None:
        self._found: dict[int, list[Birth]] = {}
        self._kept: list[Any] = []  # an id must not come again
        self._lines: dict[FrameType, int] = {}
        self._left = MOST_LINES

    def follow(self, act: Callable[[], Any]) -> None:
        """An exception of the user's ends it; what was seen until then counts."""
        before = sys.gettrace()
        sys.settrace(self._event)
        try:
            act()
        except Exception:
            self._left = 0
        finally:
            sys.settrace(before)
            self._lines.clear()

    def _event(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not is_users(frame.f_code.co_filename) or self._left <= 0:
            return None
        if event == "call":
            self._lines[frame] = 0
            self._enter(frame)
            return self._event
        done = self._lines.get(frame, 0)
        if event in ("line", "return"):
            self._left -= 1
            if done:
                self._look(frame, done, arg if event == "return" else None)
            if event == "return":
                self._passed_on(frame, arg)
            self._lines[frame] = frame.f_lineno
        if event == "return":
            self._lines.pop(frame, None)
        return self._event

    def _enter(self, frame: FrameType) -> None:
        """What is there already was made by nobody who is followed, or in the line that calls."""
        caller = frame.f_back
        calls = caller is not None and caller in self._lines
        for name, array in _named(frame.f_locals):
            if id(array) not in self._found:
                argument = calls and isinstance(frame.f_locals.get(name), np.ndarray)
                line = caller.f_lineno if caller is not None and argument else 0
                used = {n: id(a) for n, a in _named(caller.f_locals)} if caller is not None and argument else {}
                file = caller.f_code.co_filename if caller is not None and argument else ""
                self._note(array, file, line, used)

    def _passed_on(self, frame: FrameType, returned: Any) -> None:
        """A function that returns what it was given has had its part in it, and done nothing."""
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount]
        if isinstance(returned, np.ndarray) and any(frame.f_locals.get(name) is returned for name in given):
            self._note(returned, code.co_filename, frame.f_lineno, {n: id(a) for n, a in _named(frame.f_locals)})

    def _renamed(self, frame: FrameType, line: int, used: dict[str, int]) -> None:
        """`dz = da`: nothing is made, where something should be."""
        statement = statements(frame.f_code.co_filename).get(line)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if (
            statement is None
            or not isinstance(target, ast.Name)
            or not isinstance(array := frame.f_locals.get(target.id), np.ndarray)
        ):
            return
        names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}  # type: ignore[attr-defined]
        same = any(frame.f_locals.get(name) is array for name in names)
        if same and id(array) in self._found and np.array_equal(self._found[id(array)][-1].values, some_of(array)):
            self._note(array, frame.f_code.co_filename, line, used)

    def _note(self, array: Any, file: str, line: int, used: dict[str, int]) -> None:
        self._kept.append(array)
        birth = Birth(len(self._kept), file, line, array.shape, some_of(array), used)
        self._found.setdefault(id(array), []).append(birth)

    def _look(self, frame: FrameType, line: int, returned: Any) -> None:
        named = dict(_named(frame.f_locals))
        used = {name: id(array) for name, array in named.items()}
        self._renamed(frame, line, used)
        for array in (*named.values(), *_arrays(returned, 2)):
            seen, values = self._found.get(id(array)), some_of(array)
            if seen is None or not np.array_equal(seen[-1].values, values, equal_nan=True):
                self._note(array, frame.f_code.co_filename, line, used)

    def maker(self, array: np.ndarray) -> Birth | None:
        """Of the array that first had these values, whoever took them over."""
        wanted = some_of(array)
        size = float(np.abs(wanted).max(initial=0.0))
        if not size > 0 or not np.isfinite(size):
            return None
        same = [b for b in self._all() if b.shape == array.shape and np.allclose(b.values, wanted, rtol=0, atol=SAME * size)]
        return min(same, key=lambda birth: birth.order, default=None)

    def first(self, shape: tuple[int, ...], fits: Callable[[np.ndarray], bool]) -> Birth | None:
        """The first array of this shape of which that is true; larger ones are not kept whole."""
        whole = (b for b in self._all() if b.shape == shape and b.values.size == int(np.prod(shape)))
        return min((b for b in whole if fits(b.values.reshape(shape))), key=lambda b: b.order, default=None)

    def _all(self) -> Iterator[Birth]:
        return (birth for births in self._found.values() for birth in births if birth.line)

    def last_change(self, array: np.ndarray) -> Birth | None:
        """Of an array that was there before: who wrote into it last."""
        births = self._found.get(id(array), [])
        return births[-1] if len(births) > 1 and births[-1].line else None

    def upstream(self, birth: Birth) -> Birth | None:
        """What flowed into the line: of the arrays that it names the one that was made last."""
        names = _loaded(birth)
        ids = {i for name, i in birth.used.items() if name in names}
        at = birth.file, birth.line
        before = [b for i in ids for b in self._found.get(i, ()) if b.line and b.order < birth.order and (b.file, b.line) != at]
        return max(before, key=lambda b: b.order, default=None)


def place(birth: Birth | None) -> Location | None:
    return None if birth is None else locate(birth.file, birth.line)


def some_of(array: Any) -> np.ndarray:
    flat = array.reshape(-1)
    return np.array(flat[:: max(1, flat.size // COMPARED)])


def _named(scope: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arrays in local variables, under the names by which a line refers to them: dW, self.dW, grads (each of its entries)."""
    for name, value in list(scope.items()):
        if isinstance(value, np.ndarray | np.floating):
            yield name, value
        elif isinstance(value, dict | list | tuple):
            yield from ((f"{name}[{i}]", array) for i, array in enumerate(_arrays(value, 2)))
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            for key, held in list(vars(value).items()):
                yield from ((f"{name}.{key}" + (f"[{i}]" if i else ""), a) for i, a in enumerate(_arrays(held, 2)))


def _arrays(thing: Any, depth: int) -> Iterator[Any]:
    if isinstance(thing, np.ndarray | np.floating):
        yield thing
    elif depth and isinstance(thing, dict):
        for value in list(thing.values()):
            yield from _arrays(value, depth - 1)
    elif depth and isinstance(thing, list | tuple):
        for value in thing:
            yield from _arrays(value, depth - 1)
    elif depth:
        yield from (v for n in ("data", "value", "grad") if isinstance(v := getattr(thing, "__dict__", {}).get(n), np.ndarray))


@lru_cache(maxsize=32)
def statements(file: str) -> dict[int, ast.stmt]:
    """The innermost simple statement on each line of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    simple = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Delete)
    found = sorted((n for n in ast.walk(tree) if isinstance(n, simple)), key=lambda n: -(n.end_lineno or n.lineno) + n.lineno)
    return {line: n for n in found for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}


def _loaded(birth: Birth) -> set[str]:
    """Names, and names with an attribute, that the value of the line is made from."""
    statement = statements(birth.file).get(birth.line)
    value = getattr(statement, "value", None)
    if value is None:
        return set()
    found = {ast.unparse(n) for n in ast.walk(value) if isinstance(n, ast.Name | ast.Attribute)}
    if isinstance(statement, ast.AugAssign):
        found.add(ast.unparse(statement.target))
    return found
