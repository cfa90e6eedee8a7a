"""Computing in float64 in earnest. MLX has the type, but some of its functions are as accurate as float32 there.

While it lasts they are replaced by others of MLX that are exact; where a model uses one for which there is none, that is said.
"""

import io
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

from sleuth.adapters.listening.patches import put_back
from sleuth.adapters.mlx.pass_listener import replaced

# Measured against NumPy in MLX 0.32: off by 1e-9 to 3e-6.
INEXACT = {
    "Exp", "Sin", "Cos", "Sigmoid", "Erf", "ErfInv", "LogSumExp", "Softmax", "LogAddExp", "LogCumSumExp", "Convolution",
    "ConvolutionTranspose", "LayerNorm", "RMSNorm", "ScaledDotProductAttention", "RoPE", "QuantizedMatmul", "Compiled",
}  # fmt: skip


def exp(x: Any, **stream: Any) -> mx.array:
    return mx.expm1(x) + 1


def sigmoid(x: Any, **stream: Any) -> mx.array:
    return 0.5 * (1 + mx.tanh(0.5 * x))


def sin(x: Any, **stream: Any) -> mx.array:
    half = mx.tan(0.5 * x)
    return 2 * half / (1 + half * half)


def cos(x: Any, **stream: Any) -> mx.array:
    half = mx.tan(0.5 * x)
    return (1 - half * half) / (1 + half * half)


def logsumexp(x: mx.array, axis: Any = None, keepdims: bool = False, **stream: Any) -> mx.array:
    top = mx.stop_gradient(mx.max(x, axis=axis, keepdims=True))
    total = mx.log(mx.sum(exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else mx.squeeze(total, axis)


def softmax(x: mx.array, axis: Any = None, **options: Any) -> mx.array:
    axis = options.get("axis", axis)
    raised = exp(x - mx.stop_gradient(mx.max(x, axis=axis, keepdims=True)))
    return raised / mx.sum(raised, axis=axis, keepdims=True)


def logaddexp(a: Any, b: Any, **stream: Any) -> mx.array:
    return mx.maximum(a, b) + mx.log1p(exp(-mx.abs(a - b)))


@mx.custom_function  # type: ignore[untyped-decorator]
def erf(x: mx.array) -> mx.array:
    try:
        return mx.array(np.vectorize(math.erf, otypes=[np.float64])(np.array(x)), mx.float64)
    except ValueError:  # nothing is computed while a function is only read
        return mx.tanh(x)


@erf.vjp  # type: ignore[untyped-decorator]
def _erf_vjp(x: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
    return cotangent * (2 / math.sqrt(math.pi)) * exp(-x * x)


def layer_norm(x: mx.array, weight: Any, bias: Any, eps: float, **stream: Any) -> mx.array:
    out = (x - mx.mean(x, axis=-1, keepdims=True)) * mx.rsqrt(mx.var(x, axis=-1, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def rms_norm(x: mx.array, weight: Any, eps: float, **stream: Any) -> mx.array:
    out = x * mx.rsqrt(mx.mean(x * x, axis=-1, keepdims=True) + eps)
    return out if weight is None else out * weight


EXACT: dict[str, Callable[..., Any]] = {
    "exp": exp, "sigmoid": sigmoid, "sin": sin, "cos": cos, "logsumexp": logsumexp, "softmax": softmax, "logaddexp": logaddexp,
    "erf": erf,
}  # fmt: skip
METHODS = ("exp", "sin", "cos", "logsumexp")
FAST: dict[str, Callable[..., Any]] = {"layer_norm": layer_norm, "rms_norm": rms_norm}


@contextmanager
def in_earnest() -> Iterator[None]:
    compiles = is_compiling_on()
    undo: list[Callable[[], None]] = []
    mx.disable_compile()
    try:
        undo += [replaced(mx, name, function) for name, function in EXACT.items()]
        undo += [replaced(mx.array, name, EXACT[name]) for name in METHODS]
        undo += [replaced(mx.fast, name, function) for name, function in FAST.items()]
        yield
    finally:
        if compiles:
            mx.enable_compile()
        put_back(*reversed(undo))


def is_compiling_on() -> bool:
    """There is nobody to ask: a compiled function is traced once, any other at each call."""
    calls = 0

    def identity(x: mx.array) -> mx.array:
        nonlocal calls
        calls += 1
        return x

    compiled, one = mx.compile(identity), mx.array(1.0)
    compiled(one)
    compiled(one)
    return calls == 1


def inexact_operations(loss: Callable[[], mx.array]) -> list[str]:
    """Those that the loss is still made of. Leaves traces in the model: the caller puts it back."""
    told: list[dict[str, Any]] = []
    try:
        mx.export_function(told.append, lambda _: loss(), mx.array(0.0))
        names = {part["name"] for part in told if part["type"] == "primitive"}
    except ValueError:
        names = _drawn(loss)
    return sorted(names & INEXACT)


def _drawn(loss: Callable[[], mx.array]) -> set[str]:
    """A function with a backward of its own (mx.custom_function) cannot be exported, but it can be drawn."""
    undo = replaced(mx, "erf", mx.tanh)  # ours computes, and what is computed is not drawn
    picture = io.StringIO()
    try:
        mx.export_to_dot(picture, loss())
    finally:
        put_back(undo)
    return set(re.findall(r'label ="(\w+)", shape=rectangle', picture.getvalue()))
