"""Inside a scan, a while or a cond: the loop is run again one operation at a time, until something breaks."""

from collections.abc import Iterator
from typing import Any

import jax

from sleuth.adapters.jax.tape import Around, Entry, Tape

# A loop that goes on for longer is not run again.
MOST_ROUNDS = 10_000


def rounds(entry: Entry, taken: list[Any]) -> Iterator[tuple[Tape, list[Any]]]:
    """Each body that is run, with what it is given."""
    if entry.name == "scan":
        yield from _scanned(entry, taken)
    elif entry.name == "while":
        yield from _repeated(entry, taken)
    elif entry.name == "cond":
        branches = entry.equation.params["branches"]
        yield _body(branches[int(taken[0])], entry), taken[1:]


def _scanned(entry: Entry, taken: list[Any]) -> Iterator[tuple[Tape, list[Any]]]:
    params = entry.equation.params
    body, constants, carried = _body(params["jaxpr"], entry), params["num_consts"], params["num_carry"]
    given, carry, rows = taken[:constants], taken[constants : constants + carried], taken[constants + carried :]
    order = range(params["length"])[:MOST_ROUNDS]
    for index in reversed(order) if params["reverse"] else order:
        inputs = [*given, *carry, *(row[index] for row in rows)]
        yield body, inputs
        carry = _made(body, inputs)[:carried]


def _repeated(entry: Entry, taken: list[Any]) -> Iterator[tuple[Tape, list[Any]]]:
    params = entry.equation.params
    asks, runs = params["cond_nconsts"], params["body_nconsts"]
    body, given, state = _body(params["body_jaxpr"], entry), taken[asks : asks + runs], taken[asks + runs :]
    for _ in range(MOST_ROUNDS):
        if not bool(jax.core.eval_jaxpr(params["cond_jaxpr"].jaxpr, params["cond_jaxpr"].consts, *taken[:asks], *state)[0]):
            return
        yield body, [*given, *state]
        state = _made(body, [*given, *state])


def _body(closed: Any, entry: Entry) -> Tape:
    return Tape(closed, Around(entry.visits, entry.function, entry.number, entry.called, entry.location))


def _made(body: Tape, inputs: list[Any]) -> list[Any]:
    values = body.evaluate(inputs)
    return [values[atom] if isinstance(atom, int) else atom.value for atom in body.outputs]
