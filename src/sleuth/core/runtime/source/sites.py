"""Statements of the user's that update something, or that tell a loss: found in the source, whatever the names are."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# What a loss is called. Whether it is one, its value tells: one number.
LOSS = re.compile(
    r"(^|_)(loss|cost|criterion|objective|cross_?entropy|nll|mse|bce|mae|err|error)s?($|_|\d|fn|func)|loss(es)?$", re.I
)
# Asked for twice, these say the same and do nothing.
HARMLESS = ("str", "int", "len", "repr")
# Functions of NumPy that add: np.subtract(w, step).
ADDING = ("add", "subtract")
# And functions of the user's that give new weights for old ones.
UPDATING = re.compile(r"update|step|optimi[sz]|descent|sgd|adam|apply|learn", re.I)
LONGEST_TEXT = 300


@dataclass(frozen=True)
class Update:
    """`target` is changed by what it was before: w -= …, w = w - …, w = f(w, …), ws = [w - … for w in ws]."""

    file: str
    line: int
    function: str
    target: str
    value: str  # the whole right side
    operands: tuple[str, ...]  # of the right side, the target apart: what may be asked for again without doing anything
    scaled: bool  # the target stands there multiplied: a mean that moves, or a decay
    each: bool  # a list or dict is made anew from one of the same form
    is_name: bool
    alias: str = ""  # what stands for the old value, where that is not the target itself


@dataclass(frozen=True)
class Telling:
    """A number that is called a loss."""

    file: str
    line: int
    function: str
    name: str
    how: str  # "assigned", "added", "returned" or "kept" (in a list)


@dataclass
class Sites:
    """By number, of all files that were loaded."""

    updates: dict[int, Update] = field(default_factory=dict)
    tellings: dict[int, Telling] = field(default_factory=dict)

    def add(self, site: Update | Telling) -> int:
        number = len(self.updates) + len(self.tellings)
        if isinstance(site, Update):
            self.updates[number] = site
        else:
            self.tellings[number] = site
        return number


def is_pure(node: ast.expr) -> bool:
    """May it be evaluated once more?"""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=inner):
            return is_pure(inner)
        case ast.Subscript(value=inner, slice=key):
            return is_pure(inner) and is_pure(key)
        case ast.BinOp(left=left, right=right):
            return is_pure(left) and is_pure(right)
        case ast.UnaryOp(operand=inner):
            return is_pure(inner)
        case ast.JoinedStr(values=parts):
            return all(is_pure(part) for part in parts)
        case ast.FormattedValue(value=inner):
            return is_pure(inner)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return name in HARMLESS and is_pure(argument)
        case _:
            return False


def root(target: ast.expr) -> ast.expr:
    """The array of W[:, 1:] or W[...]: what stands under a name or a key."""
    while (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice | ast.Tuple)) or _is_all(target):
        target = target.value  # type: ignore[attr-defined]
    return target


def _is_all(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value is Ellipsis


def update_of(target: ast.expr, value: ast.expr, *, added: bool, file: str, function: str) -> Update | None:
    """None where the statement is none. `added`: it is `target += value`, or `-=`."""
    target = root(target)
    if not isinstance(target, ast.Name | ast.Attribute | ast.Subscript) or not is_pure(target):
        return None
    name, scaled, each, alias = ast.unparse(target), False, False, ""
    if not added:
        how = _how(name, target, value)
        if how is None:
            return None
        scaled, each, alias = how
    text, known = ast.unparse(value)[:LONGEST_TEXT], tuple(dict.fromkeys(_operands(value, name)))
    return Update(file, target.lineno, function, name, text, known, scaled, each, isinstance(target, ast.Name), alias)


def _how(name: str, target: ast.expr, value: ast.expr) -> tuple[bool, bool, str] | None:
    """(scaled, each, alias)"""
    match value:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            terms = [(term, ast.unparse(term)) for term in _terms(value)]
            if any(text == name for _, text in terms):
                return False, False, ""
            if any(_is_scaled(term, name) for term, _ in terms):
                return True, False, ""
            # for key, old in params.items(): params[key] = old - …
            first = terms[0][0]
            stored = isinstance(target, ast.Subscript | ast.Attribute)
            if stored and isinstance(value.op, ast.Sub) and isinstance(first, ast.Name | ast.Attribute | ast.Subscript):
                return (False, False, terms[0][1]) if is_pure(first) else None
        case ast.Call(func=called, args=arguments):
            by_numpy = isinstance(called, ast.Attribute) and ast.unparse(called.value) in ("np", "numpy")
            if by_numpy and _called(called) not in ADDING:
                return None
            # out = layer.forward(out, training) is carried from layer to layer, and no update.
            if not by_numpy and not UPDATING.search(_called(called)):
                return None
            given = [*arguments, *(k.value for k in value.keywords)]
            return (False, False, "") if len(given) > 1 and any(ast.unparse(a) == name for a in given) else None
        case ast.ListComp(elt=made, generators=loops) | ast.DictComp(value=made, generators=loops):
            uses = _mentions(loops[0].iter, name)  # which is read in any case
            if uses and isinstance(made, ast.BinOp | ast.Call):
                return isinstance(made, ast.BinOp) and not isinstance(_terms(made)[0], ast.Name | ast.Subscript), True, ""
    return None


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _terms(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        return [*_terms(value.left), *_terms(value.right)]
    return [value]


def _is_scaled(term: ast.expr, name: str) -> bool:
    if not isinstance(term, ast.BinOp) or not isinstance(term.op, ast.Mult | ast.Div):
        return False
    return any(ast.unparse(side) == name or _is_scaled(side, name) for side in (term.left, term.right))


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and ast.unparse(n) == name for n in ast.walk(node))


def _operands(value: ast.expr, target: str) -> Iterator[str]:
    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
        text = ast.unparse(value)
        if text != target and is_pure(value):
            yield text
        if isinstance(value, ast.Subscript) and not is_pure(value):
            yield from _operands(value.value, target)
        return
    if isinstance(value, ast.Call):  # optimiser.update(w, x.T @ delta)
        yield from (ast.unparse(a) for a in value.args if isinstance(a, ast.BinOp) and is_pure(a))
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield from _operands(child, target)
        elif isinstance(child, ast.comprehension):
            yield from _operands(child.iter, target)
        elif isinstance(child, ast.keyword):
            yield from _operands(child.value, target)
