"""A loss that backward cannot start from: it has no graph, and where that was cut; or it is not one number."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.cuts import CutNotes
from sleuth.adapters.torch.failures.calls import Again
from sleuth.adapters.torch.failures.graph import root_of
from sleuth.adapters.torch.failures.scene import sides
from sleuth.adapters.torch.failures.source import Function, functions, names_in, tree_of
from sleuth.adapters.torch.pass_listener import Listener, is_tensor
from sleuth.core.location import Location, locate
from sleuth.core.observation import Failure
from sleuth.core.runtime.tree import leaves

# What takes a tensor out of its graph, as people write it.
CUTTING = ("detach", "detach_", "item", "numpy", "tolist", "argmax", "argmin", "argsort", "long", "int", "bool", "byte")
WRAPPING = ("tensor", "from_numpy", "Tensor", "FloatTensor", "Variable", "float", "as_tensor")
MOST_LINKS = 16


def name_the_cut(failure: Failure, error: BaseException, model: nn.Module | None, again: Again, off: bool) -> Failure:
    """`off`: gradients were switched off when the script died."""
    mine = functions(error.__traceback__)
    if off and (line := _switched_off_at(mine)) is not None:
        return replace(failure, got="gradients that are switched off", advice="leave this line out of training", location=line)
    if model is not None and (frozen := _frozen(model)) is not None:
        return replace(failure, got="a loss of weights that are all frozen", advice=frozen)
    for one in mine[:1]:
        found = _chain(one, again)
        if found is not None:
            got, advice, location = found
            return replace(failure, got=got, advice=advice, location=location or failure.location)
    return failure


def describe_loss(failure: Failure, error: BaseException) -> Failure:
    """Several numbers instead of one: their shape, their name, the line that made them."""
    root, mine = root_of(error.__traceback__), functions(error.__traceback__)
    if root is None or not mine or root.numel() == 1:
        return failure
    name = _root_names(mine[0])[:1]
    statement = mine[0].binding(name[0]) if name else None
    called = name[0] if name else "the loss"
    made = mine[0].at(statement)
    unreduced = made is not None and ("'none'" in made.text or '"none"' in made.text)
    advice = f"average it: {called}.mean().backward()" if not unreduced else "leave reduction='none' out, or average: .mean()"
    # One number a sample is a loss that was not reduced; anything else may be the output itself.
    if root.dim() > 1:
        advice += "; if this is the model's output, compute a loss from it first"
    at = f" (made at line {made.line})" if made is not None else ""
    return replace(failure, got=f"{called} of shape {sides(root.shape)}{at}", advice=advice)


def _chain(mine: Function, again: Again) -> tuple[str, str, Location | None] | None:
    """From the loss back to the first statement that was given a graph and returned none."""
    waiting, seen = _root_names(mine), set[str]()
    for _ in range(MOST_LINKS):
        name = next((n for n in waiting if n not in seen), None)
        if name is None:
            return None
        seen.add(name)
        if (line := _cut_later(mine, name)) is not None:
            return f"{name}, which lost its graph in place", f"leave {line.text} out", line
        statement = mine.binding(name)
        if statement is None:
            continue
        value = getattr(statement, "value", None)
        if value is None:
            continue
        if (block := _without_graph(mine, statement)) is not None:
            text = "computed under no_grad or inference_mode"
            return f"{name}, {text}", "take the forward pass and the loss out of that block", mine.at(block)
        if _live(mine, value):
            return _cut_here(mine, name, statement, value)
        module = next((m for m in _modules(mine, value)), None)
        if module is not None and (found := _inside(name, mine, statement, again)) is not None:
            return found
        if (found := _called(mine, name, value)) is not None:
            return found
        waiting = [*names_in(value), *waiting]
    return None


def _cut_later(mine: Function, name: str) -> Location | None:
    """`loss.detach_()` and `loss.requires_grad = False`."""
    for node in mine.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="detach_")) if ast.unparse(owner) == name:
                return mine.at(node)
            case ast.Assign(targets=[ast.Attribute(value=owner, attr="requires_grad")]) if ast.unparse(owner) == name:
                return mine.at(node)
    return None


def _cut_here(mine: Function, name: str, statement: ast.stmt, value: ast.AST) -> tuple[str, str, Location | None]:
    verb = _first_cut(value)
    said = f"{name}, which lost its graph by {verb}" if verb else f"{name}, which lost its graph here"
    advice = f"compute {name} without {verb}" if verb else f"compute {name} with operations of torch that have a gradient"
    return said, advice, mine.at(statement)


def _first_cut(value: ast.AST) -> str | None:
    """What is innermost is computed first."""
    return next(reversed(list(_cutting(value))), None)


def _cutting(value: ast.AST) -> Iterator[str]:
    for node in ast.walk(value):
        match node:
            case ast.Attribute(attr="data"):
                yield ".data"
            case ast.Call(func=ast.Attribute(attr=verb)) if verb in CUTTING:
                yield f"{verb}()"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy"), attr=verb)) if verb in WRAPPING:
                yield f"{ast.unparse(node.func)}(…)"
            case ast.Call(func=ast.Name(id=verb)) if verb in WRAPPING:
                yield f"{verb}(…)"
            case ast.Compare():
                yield f"a comparison ({ast.unparse(node)})"


def _live(mine: Function, value: ast.AST) -> bool:
    """Is something with a graph given to the expression, other than a model that is called?"""
    for name in names_in(value):
        thing = mine.lookup(ast.parse(name.removesuffix(".data"), mode="eval").body)
        base = name
        while not isinstance(thing, torch.Tensor) and "." in base:  # out.argmax is a method of out
            base = base.rpartition(".")[0]
            thing = mine.lookup(ast.parse(base, mode="eval").body)
        if isinstance(thing, torch.Tensor) and thing.requires_grad:
            return True
    return False


def _modules(mine: Function, value: ast.AST) -> Iterator[nn.Module]:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            thing = mine.lookup(node.func)
            if isinstance(thing, nn.Module) and any(p.requires_grad for p in thing.parameters()):
                yield thing


def _inside(name: str, mine: Function, statement: ast.stmt, again: Again) -> tuple[str, str, Location | None] | None:
    """The model's own forward cut it: done again op by op, it says where."""
    built = again()
    if built is None:
        return f"{name}, which comes out of the model without a graph", _advice(), mine.at(statement)
    twin, run = built
    listener = Listener(twin)
    notes = CutNotes(listener, twin)
    with torch.enable_grad(), notes.listening():
        output = run()
    if any(t.requires_grad for _, t in leaves(output, is_tensor)):
        return None  # the model is innocent
    cuts = [notes.found[i] for i in sorted(notes.trail(output).cuts)] or notes.left
    if not cuts:
        return f"{name}, which comes out of the model without a graph", _advice(), mine.at(statement)
    cut = cuts[-1]
    layer = f" in {cut.layer}" if cut.layer else ""
    return f"{name}, which {cut.operation}{layer} cut from its graph", _advice(cut.operation), cut.location or mine.at(statement)


def _advice(operation: str = "") -> str:
    if operation in ("no_grad", "inference_mode"):
        return f"take the forward pass out of {operation}"
    return f"leave {operation} out of the forward pass" if operation else "look for detach(), .data or no_grad in forward"


def _called(mine: Function, name: str, value: ast.AST) -> tuple[str, str, Location | None] | None:
    """A function of the user's own that is decorated, or that cuts in what it returns."""
    for node in ast.walk(value):
        thing = mine.lookup(node.func) if isinstance(node, ast.Call) else None
        inner = getattr(thing, "__wrapped__", None)
        if isinstance(inner, FunctionType) and _switches_off(thing):
            return f"{name}, from {inner.__name__} that runs without gradients", "leave the decorator out", _line(inner)
        code = getattr(thing, "__code__", None)
        if isinstance(thing, FunctionType) and code is not None:
            for returned in _returns(code.co_filename, thing.__name__, code.co_firstlineno):
                verb = _first_cut(returned)
                if verb is not None:
                    where = locate(code.co_filename, returned.lineno)  # type: ignore[attr-defined]
                    return f"{name}, from {thing.__name__} that returns it by {verb}", f"return it without {verb}", where
    return None


def _returns(file: str, name: str, line: int) -> Iterator[ast.AST]:
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name and abs(node.lineno - line) <= len(node.decorator_list):
            yield from (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None)


def _switches_off(function: Any) -> bool:
    """`torch.no_grad()` as a decorator keeps itself in the closure of what it makes."""
    cells = getattr(function, "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells]
    kinds = (torch.no_grad, torch.inference_mode)
    return any(isinstance(thing, kinds) or isinstance(getattr(thing, "__self__", None), kinds) for thing in held)


def _line(function: FunctionType) -> Location:
    return locate(function.__code__.co_filename, function.__code__.co_firstlineno)


def _switched_off_at(mine: list[Function]) -> Location | None:
    for file in dict.fromkeys(one.file for one in mine):
        tree = tree_of(file)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and ast.unparse(node).endswith("set_grad_enabled(False)"):
                return locate(file, node.lineno)
    return None


def _without_graph(mine: Function, statement: ast.stmt) -> ast.AST | None:
    for node in mine.nodes:
        around = isinstance(node, ast.With) and node.lineno <= statement.lineno <= (node.end_lineno or 0)
        if around and any(_is_off(item.context_expr) for item in node.items):  # type: ignore[attr-defined]
            return node
    decorators = getattr(mine.scope, "decorator_list", [])
    return next((d for d in decorators if _is_off(d)), None)


def _is_off(node: ast.AST) -> bool:
    text = ast.unparse(node)
    return "no_grad" in text or "inference_mode" in text or "set_grad_enabled(False)" in text


def _frozen(model: nn.Module) -> str | None:
    parameters = list(model.parameters())
    if not parameters or any(p.requires_grad for p in parameters):
        return None
    return (
        f"let some weights learn: all {len(parameters)} of {type(model).__name__} are frozen; "
        "for p in model.parameters(): p.requires_grad_(True), or of its last layers only"
    )


def _root_names(mine: Function) -> list[str]:
    match mine.failing:
        case ast.Call(func=ast.Attribute(value=owner, attr="backward")):
            return names_in(owner)[::-1] if isinstance(owner, ast.Call) else names_in(owner)
    return []
