"""Attention weights of one forward pass: what is multiplied with the values, read off the traced pass as it was computed.

Whoever wrote it, Flax, Equinox, `jax.nn.dot_product_attention` or the user, an attention ends in a product over the keys of
something that an exponential made and that sums to one over them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.common.inspecting.attention_weights import are_weights, require_room
from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.inspecting.maps import kind_of_model, traced
from sleuth.adapters.jax.inspecting.model_copy import Guest
from sleuth.adapters.jax.loops import rounds
from sleuth.adapters.jax.tape import Entry, Tape, read
from sleuth.adapters.jax.words import family_of
from sleuth.core.contract.inspection import AttentionMap
from sleuth.core.errors import UnusableInput

# Between the exponential of the scores and the product with the values.
PASSING = (
    "div", "mul", "select_n", "convert_element_type", "reduce_precision", "reshape", "squeeze", "broadcast_in_dim", "transpose",
    "name", "copy", "stop_gradient", "sharding_constraint", "optimization_barrier",
)  # fmt: skip
EXPONENTIALS = ("exp", "exp2")
LOOPS = ("scan", "while", "cond")
# Kernels that compute an attention in one call.
FUSED = ("dot_product_attention", "flash_attention")
FUNCTION = "dot_product_attention"


@dataclass(frozen=True)
class Product:
    """A product of possible weights with values, and what each axis of the weights is."""

    entry: Entry
    slot: int
    shared: tuple[int, ...]  # with the values: samples and heads
    free: tuple[int, ...]  # of the weights alone: queries, and heads that share their keys
    keys: int


def attention(model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
    guest = Guest(model, inputs)
    trace = traced(guest)
    found = list(_told(guest, trace.tape, lambda slots: trace.values(guest.bench, guest.arrays, slots)))
    if not found:
        fused = next((e.name for e in trace.tape.entries if any(word in e.name for word in FUSED)), None)
        why = (
            "no softmax is multiplied with values, as in MultiHeadAttention, jax.nn.dot_product_attention and by hand."
            if fused is None
            else f"{fused} computes it in one kernel that hands out no weights; implementation='xla' does not."
        )
        raise UnusableInput(f"no attention was seen in {kind_of_model(model)}: {why}")
    return tuple(found)


def _told(guest: Guest, tape: Tape, values_of: Any) -> Iterator[AttentionMap]:
    """In the order of calls. A loop over layers is done again, round by round."""
    products = {id(p.entry): p for p in _products(tape)}
    require_room([tape.shapes[p.slot] for p in products.values()])
    loops = [e for e in tape.entries if e.name in LOOPS and _holds_products(e)]
    wanted = list(dict.fromkeys([*(p.slot for p in products.values()), *(s for e in loops for s in tape.sources(e))]))
    known = dict(zip(wanted, values_of(wanted) if wanted else (), strict=True))
    for entry in tape.entries:
        if id(entry) in products:
            yield from _weights(guest, products[id(entry)], known[products[id(entry)].slot])
        elif any(entry is loop for loop in loops):
            taken = [known[atom] if isinstance(atom, int) else atom.value for atom in entry.inputs]
            for body, given in rounds(entry, taken):
                yield from _told(guest, body, lambda slots, body=body, given=given: _inside(body, given, slots))


def _inside(body: Tape, given: list[Any], slots: list[int]) -> list[Any]:
    values = body.evaluate(given)
    return [read(values, slot) for slot in slots]


def _holds_products(loop: Entry) -> bool:
    bodies = [v for v in loop.equation.params.values() if hasattr(v, "jaxpr")] + list(loop.equation.params.get("branches", ()))
    tapes = [Tape(body) for body in bodies]
    return any(next(_products(t), None) or any(e.name in LOOPS and _holds_products(e) for e in t.entries) for t in tapes)


def _products(tape: Tape) -> Iterator[Product]:
    makers = {slot: entry for entry in tape.entries for slot in entry.outputs}
    for entry in tape.entries:
        if entry.name != "dot_general":
            continue
        contracted, shared = entry.equation.params["dimension_numbers"]
        for atom, keys, with_values in zip(entry.inputs, contracted, shared, strict=True):
            if not isinstance(atom, int) or len(keys) != 1 or not with_values or not _exponential(atom, makers):
                continue
            free = [axis for axis in range(len(tape.shapes[atom])) if axis not in (*keys, *with_values)]
            if free:
                yield Product(entry, atom, tuple(sorted(with_values)), tuple(free), keys[0])
                break


def _exponential(slot: int, makers: dict[int, Entry]) -> bool:
    waiting, seen = [slot], {slot}
    while waiting:
        entry = makers.get(waiting.pop())
        if entry is None:
            continue
        if entry.name in EXPONENTIALS:
            return True
        fed = entry.inputs[:1] if entry.name == "div" else entry.inputs if entry.name in PASSING else ()
        fresh = [atom for atom in fed if isinstance(atom, int) and atom not in seen]
        waiting += fresh
        seen |= set(fresh)
    return False


def _weights(guest: Guest, product: Product, array: Any) -> Iterator[AttentionMap]:
    """Nothing, where it turns out to sum to something else."""
    values = np.moveaxis(to_numpy(array), product.keys, -1)
    if not are_weights(values, float(jnp.finfo(array.dtype).eps)):
        return
    visits = [guest.progress.marks.visits[number] for number in product.entry.visits]
    layer = next((v for v in reversed(visits) if v.module is not None), None)
    by_layer = layer is not None and family_of(layer.module) == "attention"
    kind = type(layer.module).__name__ if by_layer and layer else FUNCTION if product.entry.called == FUNCTION else "softmax"
    laid = _laid_out(to_numpy(array), product, _samples(guest), one_sample=by_layer and len(product.shared) == 1)
    yield AttentionMap(layer.path if layer else "", kind, laid)


def _samples(guest: Guest) -> int:
    return next((len(a) for a in jax.tree.leaves(guest.arrays) if a.ndim), 0)


def _laid_out(values: np.ndarray, product: Product, samples: int, *, one_sample: bool) -> np.ndarray:
    """(samples, heads, queries, keys)."""
    shared, (*grouped, queries) = list(product.shared), product.free
    fits = [axis for axis in shared if values.shape[axis] == samples]
    if len(fits) == 1 and shared[0] != fits[0]:  # `vmap` over the heads, outside of the samples
        shared.remove(fits[0])
        shared.insert(0, fits[0])
    # An axis of the weights alone beside the queries: heads that share their keys and values.
    heads = [] if grouped and len(shared) == 1 and not one_sample else shared if one_sample else shared[1:][-1:]
    first = [axis for axis in shared if axis not in heads]
    turned = values.transpose(*first, *heads, *grouped, queries, product.keys)
    sizes = [int(np.prod([values.shape[axis] for axis in axes])) for axes in (first, [*heads, *grouped])]
    return turned.reshape(*sizes, *turned.shape[-2:]).astype(np.float32)
