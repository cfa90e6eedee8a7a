"""Calling the user's functions: hand-written code agrees on what is passed, not on names or order."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# What a parameter of the user's function is called → what it wants.
WORDS = {
    "inputs": ("x", "inputs", "input", "features", "data", "xb", "x_batch"),
    "target": ("y", "target", "targets", "label", "labels", "y_true", "t", "yb", "y_batch"),
    "output": ("output", "outputs", "out", "y_pred", "y_hat", "yhat", "pred", "preds", "prediction", "predictions", "logits",
               "scores", "probs", "probabilities"),
    "gradient": ("grad", "grad_output", "gradient", "dout", "delta", "upstream", "dy", "dz", "grad_out", "output_gradient",
                 "error"),
    "gradients": ("grads", "gradients", "g"),
    "parameters": ("params", "parameters", "weights"),
    "rate": ("lr", "learning_rate", "learn_rate", "rate", "eta", "alpha", "step_size"),
    "batch": ("batch",),
    "model": ("model", "net", "network"),
    "training": ("training", "train", "is_training", "train_mode"),
    "cache": ("cache", "caches", "saved", "tape", "ctx", "context", "memory", "intermediates", "activations"),
}  # fmt: skip
ROLE = {word: role for role, words in WORDS.items() for word in words}

Offers = Mapping[str, Callable[[], Any]]


def given(value: Any) -> Callable[[], Any]:
    return lambda: value


def call(function: Callable[..., Any], offers: Offers, order: Sequence[str], named: Offers | None = None) -> Any:
    """Each parameter gets what its name asks for; a name that says nothing gets the next of `order`.

    A parameter with a default is filled only when its name asks for something on offer. Offers are made on demand. `named` are
    names of the user's own, such as W1, which come before ours.
    """
    parameters = positional(function)
    if parameters is None:
        return function(*(offers[role]() for role in order))
    named = named or {}
    offers = {**offers, **named}
    waiting = [role for role in order if role not in {role_of(p) for p in parameters}]
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in parameters:
        role = parameter.name if parameter.name in named else role_of(parameter)
        if role not in offers:
            role = waiting.pop(0) if is_required(parameter) and waiting else ""
        if role and parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = offers[role]()
        elif role and not keywords:
            arguments.append(offers[role]())
        elif role:
            keywords[parameter.name] = offers[role]()
        elif not is_required(parameter):
            keywords.update({parameter.name: parameter.default} if parameter.kind is not parameter.POSITIONAL_ONLY else {})
    return function(*arguments, **keywords)


def positional(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters to fill in; None when they cannot be known (builtins, *args)."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


def role_of(parameter: inspect.Parameter) -> str:
    return ROLE.get(parameter.name.lower().lstrip("_"), "")


def is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def takes(function: Callable[..., Any], role: str) -> bool:
    """Does a parameter's name ask for this?"""
    return any(role_of(p) == role for p in positional(function) or ())


def takes_nothing(function: Callable[..., Any]) -> bool:
    return positional(function) == []


def default_of(function: Callable[..., Any], role: str) -> Any:
    """The default of the parameter that asks for this; None when there is none."""
    found = [p.default for p in positional(function) or () if role_of(p) == role and not is_required(p)]
    return found[0] if found else None
