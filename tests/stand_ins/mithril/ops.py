"""The functions of the NumPy backend that are needed, and their gradients: argument → gradient."""

import math

import numpy as np
from scipy.special import erf


def transpose(input, axes=None, *, cache=None):
    return input.T if not axes else input.transpose(*axes)


def matrix_multiplication(left, right, cache=None):
    return left @ right


def add(left, right, cache=None):
    return left + right


def subtract(left, right, cache=None):
    return left - right


def multiplication(left, right, cache=None):
    return left * right


def divide(numerator, denominator, cache=None):
    return np.divide(numerator, denominator)


def relu(input, cache=None):
    return np.maximum(np.array(0.0, dtype=input.dtype), input)


def sigmoid(input, cache=None):
    return 1 / (1 + np.exp(-input))


def tanh(input, cache=None):
    return np.tanh(input)


def gelu(input, approximate, cache=None):
    return (input * (1 + erf(input / math.sqrt(2))) / 2).astype(input.dtype)


def softmax(input, *, axis=-1, cache=None):
    e = np.exp(input - np.max(input, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log(input, cache=None):
    return np.log(input)


def sin(input, cache=None):
    return np.sin(input)


def sqrt(input, cache=None):
    return np.sqrt(input)


def stop_gradient(input, cache=None):
    return input


def reduce_mean(input, *, axis=None, keepdim=False, cache=None):
    return np.mean(input, axis=axis, keepdims=keepdim)


def variance(input, *, axis=None, keepdim=False, correction=0.0, cache=None):
    return np.var(input, axis=axis, ddof=correction, keepdims=keepdim)


def flatten(input, *, start_dim=0, end_dim=-1, cache=None):
    return np.reshape(input, (*input.shape[:start_dim], -1))


def reshape(input, shape, cache=None):
    return np.reshape(input, shape)


def primitive_embedding(input, weight, *, cache=None):
    return weight[input]


def _class_checked(target):
    if not np.issubdtype(target.dtype, np.integer):
        raise ValueError(f"Cross entropy got unexpected type for target '{target.dtype}'.")


def cross_entropy_with_logits(input, target, weights, threshold, *, categorical=True, robust=False, cache=None):
    top = input - input.max(1, keepdims=True)
    logs = top - np.log(np.exp(top).sum(1, keepdims=True))
    if not categorical:
        return -np.sum(target * logs, axis=1)
    _class_checked(target)
    return -np.take_along_axis(logs, target[:, None], axis=1)[:, 0]


def cross_entropy_with_log_probs(input, target, weights, *, categorical=True, cache=None):
    if not categorical:
        return -np.sum(target * input, axis=1)
    _class_checked(target)
    return -np.take_along_axis(input, target[:, None], axis=1)[:, 0]


def binary_cross_entropy(input, target, threshold, *, pos_weight=1.0, robust=False, cache=None):
    return -target * np.log(input) - (1 - target) * np.log(1 - input)


def binary_cross_entropy_with_logits(input, target, threshold, *, pos_weight=1.0, robust=False, cache=None):
    return np.logaddexp(0, input) - target * input


def squared_error(input, target, cache=None):
    return (input - target) ** 2


def absolute_error(input, target, cache=None):
    return np.abs(input - target)


primitive_func_dict = {key: fn for key, fn in globals().items() if callable(fn) and not key.startswith("_")}


def _summed(gradient, like):
    """Back through a broadcast."""
    while gradient.ndim > np.ndim(like):
        gradient = gradient.sum(0)
    axes = tuple(i for i, n in enumerate(np.shape(like)) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axes, keepdims=True) if axes else gradient


def _both(gradient, out, left, right, of_left, of_right):
    return {"left": _summed(gradient * of_left, left), "right": _summed(gradient * of_right, right)}


def _matrices(g, out, left, right):
    return {"left": g @ np.swapaxes(right, -1, -2), "right": _summed(np.swapaxes(left, -1, -2) @ g, right)}


def _gelu(g, out, input, approximate):
    inner = (1 + erf(input / math.sqrt(2))) / 2 + input * np.exp(-(input**2) / 2) / math.sqrt(2 * math.pi)
    return {"input": (g * inner).astype(g.dtype)}


def _reduced(g, input, axis, keepdim):
    g = g if axis is None or keepdim else np.expand_dims(g, axis)
    return np.broadcast_to(g, input.shape) * (np.size(g) / input.size)


def _variance(g, out, input, axis=None, keepdim=False, correction=0.0):
    room = input.size / max(np.size(out), 1)
    inner = 2 * (input - input.mean(axis, keepdims=True)) * (room / (room - correction))
    return {"input": _reduced(g, input, axis, keepdim) * inner}


def _embedding(g, out, input, weight):
    made = np.zeros_like(weight)
    np.add.at(made, input, g)
    return {"weight": made}


def _one_hot(target, scores, categorical):
    if not categorical:
        return target.astype(scores.dtype)
    made = np.zeros_like(scores)
    np.put_along_axis(made, target[:, None], 1, 1)
    return made


def _cross_entropy(g, out, input, target, weights, threshold, categorical=True, robust=False):
    wanted = _one_hot(target, input, categorical)
    return {"input": g[:, None] * (softmax(input, axis=1) * wanted.sum(1, keepdims=True) - wanted)}


gradients = {
    "transpose": lambda g, out, input, axes=None: {"input": g.T if not axes else g.transpose(*np.argsort(axes))},
    "matrix_multiplication": _matrices,
    "add": lambda g, out, left, right: _both(g, out, left, right, 1, 1),
    "subtract": lambda g, out, left, right: _both(g, out, left, right, 1, -1),
    "multiplication": lambda g, out, left, right: _both(g, out, left, right, right, left),
    "divide": lambda g, out, numerator, denominator: {
        "numerator": _summed(g / denominator, numerator),
        "denominator": _summed(-g * out / denominator, denominator),
    },
    "relu": lambda g, out, input: {"input": g * (out > 0)},
    "sigmoid": lambda g, out, input: {"input": g * out * (1 - out)},
    "tanh": lambda g, out, input: {"input": g * (1 - out**2)},
    "gelu": _gelu,
    "softmax": lambda g, out, input, axis=-1: {"input": out * (g - (g * out).sum(axis, keepdims=True))},
    "log": lambda g, out, input: {"input": g / input},
    "sin": lambda g, out, input: {"input": g * np.cos(input)},
    "sqrt": lambda g, out, input: {"input": g / (2 * out)},
    "stop_gradient": lambda g, out, input: {},
    "reduce_mean": lambda g, out, input, axis=None, keepdim=False: {"input": _reduced(g, input, axis, keepdim)},
    "variance": _variance,
    "flatten": lambda g, out, input, start_dim=0, end_dim=-1: {"input": g.reshape(input.shape)},
    "reshape": lambda g, out, input, shape: {"input": g.reshape(input.shape)},
    "primitive_embedding": _embedding,
    "cross_entropy_with_logits": _cross_entropy,
    "cross_entropy_with_log_probs": lambda g, out, input, target, weights, categorical=True: {
        "input": -g[:, None] * _one_hot(target, input, categorical)
    },
    "binary_cross_entropy": lambda g, out, input, target, **_: {"input": g * (input - target) / (input * (1 - input))},
    "binary_cross_entropy_with_logits": lambda g, out, input, target, **_: {"input": g * (sigmoid(input) - target)},
    "squared_error": lambda g, out, input, target: {"input": _summed(2 * g * (input - target), input)},
    "absolute_error": lambda g, out, input, target: {"input": _summed(g * np.sign(input - target), input)},
}
