"""What the functions and layers that JAX, Flax, Equinox and optax bring along do to data."""

from dataclasses import replace
from typing import Any

from sleuth.adapters.jax.describing import layer_settings
from sleuth.adapters.jax.operation_reading import Reading, read, unchanged
from sleuth.adapters.jax.tape import Entry, Tape
from sleuth.adapters.jax.words import ACTIVATIONS, LOSSES, SOFTMAXES, family_of

# A bias that is added to what a product made belongs to it.
BIASED = ("linear", "conv")


def function_reading(entries: list[Entry]) -> Reading:
    name = entries[0].function
    if name in ACTIVATIONS:
        return Reading("activation", activation=name)
    if name in LOSSES:
        return Reading("loss")
    if name not in SOFTMAXES:
        return Reading("other")
    axes: tuple[int, ...] = next((e.equation.params["axes"] for e in entries if e.name in ("reduce_max", "reduce_sum")), ())
    return Reading("softmax", {"axis": int(axes[0])} if len(axes) == 1 else {})


def layer_reading(tape: Tape, module: Any, entries: list[Entry], slot: int) -> Reading:
    family, shape = family_of(module), tape.shapes[slot]
    settings = layer_settings(module)
    if family == "linear":
        ends = {"axis": len(shape) - 1, "out_axis": len(shape) - 1, "bias": settings.get("bias", False)}
        known = shape and isinstance(settings.get("in"), int) and isinstance(settings.get("out"), int)
        return Reading(family, {"in": settings["in"], "out": settings["out"], **ends}) if known else Reading("other")
    if family == "conv":
        product = next((e for e in entries if e.name == "conv_general_dilated"), None)
        inner = Reading("other") if product is None else read(tape, product, [0], [1])
        return replace(inner, settings={**inner.settings, "bias": settings.get("bias", False)}) if inner.settings else inner
    if family == "dropout":
        return Reading(family, settings, unchanged(shape))
    if family == "batchnorm":
        centres = {"centres": len(shape) - 1} if any(e.name == "reduce_sum" for e in entries) else {}
        return Reading(family, centres, unchanged(shape))
    if family == "pool":
        averages = any(e.name == "reduce_window_sum" for e in entries)
        return Reading("average", {}, unchanged(shape)) if averages else Reading("pool")
    return Reading(family, {}, activation=str(settings.get("activation", "")))
