"""The cost of training steps: each phase and each layer as a program of its own, and the whole step as one."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend import core

from sleuth.adapters.jax.arrays import device
from sleuth.adapters.jax.bench import JaxBench
from sleuth.adapters.jax.profiling.layers import spent, work
from sleuth.core.contract.adapter import Bench, Profiles
from sleuth.core.contract.workload import Cost, LayerWork, MemoryUse, Phases
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts

LAYER_REPEATS = 5
APART = (
    "Phases and layers were compiled apart, each as a program of its own, and timed one by one: read them as shares. In one "
    "program XLA computes some of it together, and may be quicker than their sum."
)


class JaxProfiles(Profiles):
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        held = _own(bench)
        tell("Compiling")
        phases: list[Phases] = []
        for _ in range(warm_up):
            _stepped(held, batches)
        for number in range(steps):
            tell(f"Step {number + 1} of {steps}")
            step, batch = _stepped(held, batches)
            phases.append(step)
        tell("The step as one program")
        fused, program = _fused(held, batch, steps)
        tell("Looking at the layers")
        layers = work(held, batch, LAYER_REPEATS, backward=True)
        where = next((device(a) for a in jax.tree.leaves(held.params)), "cpu")
        return Cost(tuple(phases), layers, _memory(held, batch, program), where, fused, (APART,))

    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        return work(_own(bench), batch, repeats)


def _own(bench: Bench) -> JaxBench:
    if not isinstance(bench, JaxBench):
        raise Unsupported("this bench does not hold a model of JAX")
    return bench


def _stepped(bench: JaxBench, batches: Iterator[Parts]) -> tuple[Phases, Parts]:
    """A backward cannot be run alone: it is what a gradient takes beyond a forward of the same batch."""
    bench.take_back()
    began = time.perf_counter()
    batch = next(batches)
    # To the device, where a batch comes from the host.
    jax.block_until_ready(jax.device_put(bench.arrays(batch)))
    data = time.perf_counter() - began
    forward, _ = _once(bench, *bench.asked("loss", bench.value_of, batch))
    gradient = jax.value_and_grad(bench.value_of, has_aux=True)
    both, ((_, bench.rest), gradients) = _once(bench, *bench.asked("gradients", gradient, batch))
    optimiser, (bench.params, bench.stepper.state) = _once(bench, *bench.asked_to_apply(gradients))
    return Phases(data, forward, max(both - forward, 0.0), optimiser), batch


def _once(bench: JaxBench, name: Any, function: Any, *given: Any) -> tuple[float, Any]:
    """Compiling is no part of it."""
    executable, flat, out = bench.programs.ready(("timed", name), function, *given)
    began = time.perf_counter()
    made = jax.block_until_ready(executable(*flat))
    return time.perf_counter() - began, jax.tree.unflatten(out, made)


def _fused(bench: JaxBench, batch: Parts, steps: int) -> tuple[float, Any]:
    """Seconds of a whole step in one program, as a training compiles it, and the program. Nothing is kept of what it makes."""
    _, apply, *_, state, knobs = bench.asked_to_apply(None)

    def whole(params: Any, rest: Any, given: Any, training: bool, state: Any, knobs: Any) -> Any:
        (value, rest), gradients = jax.value_and_grad(bench.value_of, has_aux=True)(params, rest, given, training)
        return value, rest, apply(params, gradients, state, knobs)

    (name, *key), run, *given = bench.asked("whole step", whole, batch)
    ready = (name, *key, bench.stepper.plan), run, *given, state, knobs
    executable, flat, _ = bench.programs.ready(*ready)
    jax.block_until_ready(executable(*flat))
    times = sorted(spent(executable, flat) for _ in range(steps))
    return times[len(times) // 2], executable


def _memory(bench: JaxBench, batch: Parts, step: Any) -> MemoryUse:
    parameters = size(bench.params)
    return MemoryUse(
        parameters=parameters,
        buffers=size(bench.rest),
        gradients=parameters,
        optimiser=size(bench.stepper.state),
        activations=_kept(bench, batch),
        batch=size(bench.arrays(batch)),
        peak=_peak(step),
        growth=None,
    )


def size(tree: Any) -> int:
    return sum(int(a.size) * a.dtype.itemsize for a in jax.tree.leaves(tree))


def _kept(bench: JaxBench, batch: Parts) -> int:
    """What the traced forward pass hands to the backward pass beside weights and batch; XLA may compute some of it anew."""
    _, run, params, rest, arrays = bench.asked("kept", bench.value_of, batch)

    def pulling(params: Any, rest: Any, arrays: Any) -> list[Any]:
        _, pull, _ = jax.vjp(lambda p: run(p, rest, arrays), params, has_aux=True)
        return jax.tree.leaves(pull)

    jaxpr = jax.make_jaxpr(pulling)(params, rest, arrays).jaxpr
    given = {id(var) for var in jaxpr.invars}
    kept = {id(var): var.aval for var in jaxpr.outvars if not isinstance(var, core.Literal) and id(var) not in given}
    return sum(int(aval.size) * aval.dtype.itemsize for aval in kept.values())


def _peak(step: Any) -> int | None:
    """Of the whole step, as XLA has planned it: not every backend tells."""
    try:
        plan = step.memory_analysis()
        return int(plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes - plan.alias_size_in_bytes)
    except Exception:
        return None
