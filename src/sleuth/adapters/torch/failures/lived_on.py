"""“Backward a second time”: which tensor lived on after its graph was used up, and the line that keeps it."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.failures.built import loaded_files
from sleuth.adapters.torch.failures.graph import State, nodes_behind, root_of, states_of
from sleuth.adapters.torch.failures.source import Function, bound, functions, names_in, tree_of
from sleuth.adapters.torch.source_lines import class_text
from sleuth.adapters.torch.watching.memory_holders import carried
from sleuth.adapters.torch.watching.user_variables import CONTAINERS, Variable, adding_line, variables
from sleuth.core.location import Location, locate
from sleuth.core.observation import Failure

SEARCH_SECONDS = 0.5
Told = tuple[str, str, Location | None]  # what was found, what to do, where


def name_what_lived_on(failure: Failure, error: BaseException, model: nn.Module | None) -> Failure:
    mine, root = functions(error.__traceback__), root_of(error.__traceback__)
    if root is None or not mine:
        return failure
    states = states_of(nodes_behind(root))
    whole = _state(root, states)
    told = None
    if whole is not None and whole.used and not whole.fresh:
        told = _same_loss(mine[0])
    told = told or _carried(mine, root, states) or _kept(mine, root, states, model) or _carried(mine, root, None)
    told = told or _in_the_model(model)
    if told is None:
        return failure
    got, advice, location = told
    return replace(failure, got=got, advice=advice, location=location or failure.location)


def _same_loss(mine: Function) -> Told | None:
    """Nothing of the graph is new: the very same loss went backward before."""
    name = _root_name(mine)
    if name is None:
        return None
    binding, loop = mine.binding(name), mine.loop
    if binding is not None and loop is not None and not _inside(binding, loop) and not isinstance(binding, ast.AugAssign):
        return _once(name, mine.at(binding))
    others = [line for line, owner in _backwards(mine) if owner == name and line != mine.line]
    if not others:
        return None
    advice = f"call {name}.backward() once a step: line {others[0]} has done it; retain_graph=True there if both are meant"
    return f"{name}, which went backward at line {others[0]} already", advice, mine.at(mine.line)


def _carried(mine: list[Function], root: torch.Tensor, states: dict[int, State] | None) -> Told | None:
    """A name that a loop reads before it gives it a new value: a state, or a running total. Without `states` any graph will do:
    what a step hands on need not be what its loss was made of."""
    for one in mine:
        for name, statement in _carried_names(one):
            tensors = list(_tensors(one.lookup(_parsed(name))))
            if any(t is root for t in tensors) or _is_total(statement, name, one):
                if not any(_used(t, states) for t in tensors):
                    continue
                advice = f"call backward on the loss of this step alone, and add up numbers: {name} += loss.item()"
                return f"{name}, to which the losses of earlier steps were added", advice, one.at(statement)
            if any(_used(t, states) for t in tensors):
                cut = f"{name} = {name}.detach()"
                if not isinstance(one.lookup(_parsed(name)), torch.Tensor):
                    cut = f"{name} = tuple(part.detach() for part in {name})"
                return (
                    f"{name}, which carries the graph of the step before",
                    f"cut it before it is used again: {cut}",
                    one.at(statement),
                )
    return None


def _kept(mine: list[Function], root: torch.Tensor, states: dict[int, State], model: nn.Module | None) -> Told | None:
    """A variable behind which everything is used up; the newest is what the loss was made of. Those of this very step are used up
    too, by the backward that raised."""
    found: list[tuple[int, Variable]] = []
    for variable in variables(mine[0].frame, SEARCH_SECONDS):
        for tensor in _tensors(variable.value):
            state = _state(tensor, states)
            if tensor is not root and state is not None and state.used and not state.fresh and not _is_new(variable, mine):
                found.append((max(number for number, s in states.items() if s is state), variable))
    if not found:
        return None
    _, variable = max(found, key=lambda f: (f[0], -len(f[1].name)))
    return _about(variable, mine, model)


def _is_new(variable: Variable, mine: list[Function]) -> bool:
    """Was it computed after the last backward before the one that raised?"""
    for one in mine:
        binding = one.binding(variable.name)
        if binding is not None:
            loop = one.loop
            between = any(binding.lineno < line < one.line for line, _ in _backwards(one))
            return not between and (loop is None or _inside(binding, loop)) and not isinstance(variable.value, CONTAINERS)
    return False


def _about(variable: Variable, mine: list[Function], model: nn.Module | None) -> Told:
    name = variable.name
    if isinstance(variable.value, CONTAINERS):
        got = f"{name}, which holds tensors of earlier steps"
        return got, f"empty {name} after each backward: {name}.clear()", adding_line(variable)
    for one in mine:
        binding, loop = one.binding(name), one.loop
        if binding is not None and loop is not None and not _inside(binding, loop):
            return _once(name, one.at(binding))
        earlier = [line for line, _ in _backwards(one) if line < one.line]
        if binding is not None and earlier and earlier[-1] > binding.lineno:
            advice = (
                f"add the losses and go backward once, (loss_a + loss_b).backward(), or keep the graph in the first: "
                f"backward(retain_graph=True) at line {earlier[-1]}; where only one of them is to train what made {name}, give "
                f"the other {name}.detach()"
            )
            got = f"{name}, which the backward at line {earlier[-1]} has used up"
            return got, advice, one.at(one.line)
    if "." in name:
        word = name.rpartition(".")[2]
        where = _attribute_line(word, model)
        return (
            f"{name}, which was computed once and kept",
            f"compute it in every step, or keep it without its graph: self.{word} = ….detach()",
            where,
        )
    return _once(name, None)


def _once(name: str, location: Location | None) -> Told:
    advice = f"compute {name} in every step, inside the loop; if it is not to be trained, cut it: {name} = {name}.detach()"
    return f"{name}, which was computed once, before the loop", advice, location


def _in_the_model(model: nn.Module | None) -> Told | None:
    name = carried(model) if model is not None else None
    if name is None:
        return None
    word = name.rpartition(".")[2]
    advice = f"cut it where it is kept: self.{word} = {word}.detach()"
    return f"{name}, which the model keeps from step to step", advice, _attribute_line(word, model)


def _attribute_line(word: str, model: nn.Module | None) -> Location | None:
    """Where an attribute of that name is set, if there is one such line only: in the classes of the model, else in any of the
    user's own files."""
    classes: set[Any] = {kind for m in model.modules() for kind in type(m).__mro__} if model is not None else set()
    texts = [class_text(kind) for kind in classes if issubclass(kind, nn.Module)]
    files = ((file, tree) for file in loaded_files() if (tree := tree_of(file)) is not None)
    for places in (texts, files):
        found = [(file, line) for file, text in places for line in _settings(text, word)]
        if found:
            return locate(*found[0]) if len(found) == 1 else None
    return None


def _settings(text: ast.AST, word: str) -> Iterator[int]:
    for node in ast.walk(text):
        if any(name.endswith(f".{word}") for name in bound(node)) and not _is_none(node):
            yield getattr(node, "lineno", 1)


def _carried_names(mine: Function) -> Iterator[tuple[str, ast.stmt]]:
    loop = mine.loop
    if loop is None:
        return
    statements = [n for n in mine.nodes if isinstance(n, ast.stmt) and n is not loop and _inside(n, loop)]
    for statement in sorted(statements, key=lambda s: s.lineno):
        value = getattr(statement, "value", None)
        read = {*names_in(value), *(bound(statement) if isinstance(statement, ast.AugAssign) else ())}
        above = [s for s in statements if s.lineno < statement.lineno]
        for name in bound(statement):
            if any(name in bound(s) for s in above):
                continue
            if name in read or any(name in names_in(getattr(s, "value", None)) for s in above):
                yield name, statement


def _is_total(statement: ast.stmt, name: str, mine: Function) -> bool:
    value = mine.lookup(_parsed(name))
    adds = isinstance(statement, ast.AugAssign) or isinstance(getattr(statement, "value", None), ast.BinOp)
    return adds and isinstance(value, torch.Tensor) and value.numel() == 1


def _backwards(mine: Function) -> list[tuple[int, str]]:
    """The calls of backward in the function: line and what it is called on."""
    found = []
    for node in mine.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="backward")):
                found.append((node.lineno, ast.unparse(owner)))
    return sorted(found)


def _root_name(mine: Function) -> str | None:
    match mine.failing:
        case ast.Call(func=ast.Attribute(value=owner, attr="backward")):
            return next(iter(names_in(owner)), None) if isinstance(owner, ast.Name | ast.Attribute) else names_in(owner)[-1]
    return None


def _used(tensor: torch.Tensor, states: dict[int, State] | None) -> bool:
    if states is None:
        return tensor.grad_fn is not None
    state = _state(tensor, states)
    return state is not None and state.used


def _state(tensor: torch.Tensor, states: dict[int, State]) -> State | None:
    node: Any = tensor.grad_fn
    return None if node is None else states.get(int(node._sequence_nr()))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict) and len(value) <= 4096:
        for part in list(value.values() if isinstance(value, dict) else value):
            if isinstance(part, torch.Tensor):
                yield part


def _parsed(name: str) -> ast.AST:
    return ast.parse(name, mode="eval").body


def _inside(node: ast.AST, loop: ast.AST) -> bool:
    return loop.lineno <= node.lineno <= (loop.end_lineno or loop.lineno)  # type: ignore[attr-defined]


def _is_none(node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Constant) and value.value is None
