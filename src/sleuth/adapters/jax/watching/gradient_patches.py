"""What is called in place of value_and_grad, grad and apply_updates while somebody listens."""

import functools
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from sleuth.adapters.jax.watching.channel import Collector, lane_of
from sleuth.adapters.jax.watching.created_at import optimiser_in_use
from sleuth.adapters.jax.watching.inner_values import Inside
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.listening.patches import attempt, carries_call

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.hub import Hub


class Hearing(threading.local):
    collector: Collector | None = None  # a second executable is being traced
    marked: Any = None  # the compiled function that is being called, if nothing is known of it yet
    busy: bool = False  # we are at work ourselves
    taking: bool = False  # a gradient is being taken by one of the functions below
    looks_inside: bool = False  # the second executable that is traced is to tell what is said inside the loss, too


HEARING = Hearing()


def make_value_and_grad(plain: Callable[..., Any], hub: "Hub") -> Callable[..., Any]:
    def value_and_grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
        taken = plain(fun, argnums, has_aux, **options)

        @functools.wraps(taken)
        def call(*args: Any, **kwargs: Any) -> Any:
            inside = _inside(fun, args, kwargs, argnums) if HEARING.looks_inside else None
            take = taken if inside is None else plain(inside.function, argnums, has_aux, **options)
            value, gradients = result = _taken(take, args, kwargs)
            loss = value[0] if has_aux else value
            attempt(hub.failed, _hear, hub, _heard_gradient, args, argnums, loss, gradients, (fun, args, kwargs, argnums))
            if inside is not None:
                _heard_inside(inside, args, argnums)
            if attempt(hub.failed, _is_computed, loss):
                hub.speak_up()
            return result

        return call

    return value_and_grad


def make_grad(plain: Callable[..., Any], both: Callable[..., Any], hub: "Hub") -> Callable[..., Any]:
    """`both`: value_and_grad as JAX has it. The loss that `grad` throws away is heard all the same."""

    def grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
        alone = plain(fun, argnums, has_aux, **options)
        taken = both(fun, argnums, has_aux, **options)

        @functools.wraps(alone)
        def call(*args: Any, **kwargs: Any) -> Any:
            if HEARING.busy:
                return alone(*args, **kwargs)
            inside = _inside(fun, args, kwargs, argnums) if HEARING.looks_inside else None
            take = taken if inside is None else both(inside.function, argnums, has_aux, **options)
            value, gradients = _taken(take, args, kwargs)
            loss = value[0] if has_aux else value
            attempt(hub.failed, _hear, hub, _heard_gradient, args, argnums, loss, gradients, (fun, args, kwargs, argnums))
            if inside is not None:
                _heard_inside(inside, args, argnums)
            if attempt(hub.failed, _is_computed, loss):
                hub.speak_up()
            return (gradients, value[1]) if has_aux else gradients

        return call

    return grad


def make_vjp(plain: Callable[..., Any], hub: "Hub") -> Callable[..., Any]:
    """What JAX's own value_and_grad calls: a function that it made before anybody listened is heard here."""

    def vjp(fun: Callable[..., Any], *primals: Any, **options: Any) -> Any:
        result = plain(fun, *primals, **options)
        if HEARING.taking or HEARING.busy or sys._getframe(1).f_code.co_name != "value_and_grad_f":
            return result
        loss, back, *others = result

        def heard(*given: Any) -> Any:
            gradients = back(*given)
            alone = len(primals) == 1
            args, argnums, found = (
                ((*primals, None), 0, gradients[0]) if alone else (primals, tuple(range(len(primals))), gradients)
            )
            attempt(hub.failed, _hear, hub, _heard_gradient, args, argnums, loss, found)
            if attempt(hub.failed, _is_computed, loss):
                hub.speak_up()
            return gradients

        return (loss, heard, *others)

    return vjp


def _inside(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any) -> Inside | None:
    if HEARING.collector is None or HEARING.busy:
        return None
    HEARING.looks_inside = False  # of a gradient within it, or after it, nothing is told
    return Inside(fun, args, kwargs, argnums)


@carries_call
def _taken(take: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outer, HEARING.taking = HEARING.taking, True
    try:
        return take(*args, **kwargs)
    finally:
        HEARING.taking = outer


def make_apply_updates(plain: Callable[..., Any], hub: "Hub") -> Callable[..., Any]:
    def apply_updates(params: Any, updates: Any, *args: Any, **kwargs: Any) -> Any:
        after = plain(params, updates, *args, **kwargs)
        attempt(hub.failed, _hear, hub, _heard_update, params, after)
        return after

    return apply_updates


def _is_computed(loss: Any) -> bool:
    """By the user, and at once."""
    return HEARING.collector is None and not HEARING.busy and not isinstance(loss, jax.core.Tracer)


def _hear(hub: "Hub", heard: Callable[..., None], *args: Any) -> None:
    """What we compute ourselves is not heard."""
    if HEARING.busy:
        return
    HEARING.busy = True
    try:
        heard(hub, *args)
    finally:
        HEARING.busy = False


def _heard_gradient(hub: "Hub", args: tuple[Any, ...], argnums: Any, loss: Any, gradients: Any, taken: Any = None) -> None:
    traced = isinstance(loss, jax.core.Tracer)
    if HEARING.collector is None and traced:
        if HEARING.marked is not None:
            HEARING.marked.has_parts = True
        return
    by = args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)
    lane, weights, chosen = lane_of(by)
    flat = [g for g, wanted in zip(jax.tree_util.tree_leaves(gradients), chosen, strict=True) if wanted]
    if not weights:
        return
    single = len(weights) == 1 and (argnums not in (0, (0,)) or len(args) < 2)
    if HEARING.collector is None:
        hub.eager_gradient(lane, weights, loss, flat, single=single, taken=taken)
    else:
        HEARING.collector.gradient(lane, weights, loss, flat, single=single)


def _heard_inside(inside: Inside, args: tuple[Any, ...], argnums: Any) -> None:
    """What goes wrong here is met by whoever traces: then it is traced again without this."""
    collector = HEARING.collector
    if collector is None:
        return
    by = args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)
    outer, HEARING.busy = HEARING.busy, True
    lane = lane_of(by)[0]
    try:
        told = inside.told(lane.paths)
        collector.learn(inside.learned(lane.names, users_line()))
    finally:
        HEARING.busy = outer
    if told is not None:
        collector.inside(told)


def _heard_update(hub: "Hub", params: Any, after: Any) -> None:
    lane, before, _ = lane_of(params)
    changed = lane_of(after)[1]
    if not before or len(changed) != len(before):
        return
    if HEARING.collector is not None:
        HEARING.collector.update(lane, before, changed)
        HEARING.collector.optimiser = HEARING.collector.optimiser or optimiser_in_use()
    elif any(isinstance(leaf, jax.core.Tracer) for leaf in changed):
        if HEARING.marked is not None:
            HEARING.marked.has_parts = True
    else:
        hub.eager_update(lane, before, changed, optimiser_in_use)
