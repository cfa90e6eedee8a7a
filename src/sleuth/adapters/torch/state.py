"""Leaving everything as it was: random states, gradients, modes, loader generators."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sleuth.core.subject import Subject

# Loader → batch sampler → sampler → generator, or loader → dataset → transform → generator.
GENERATOR_DEPTH = 5


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    generators = [(g, _get(g)) for g in _generators((subject.train, subject.validation), GENERATOR_DEPTH, set())]
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    gradients = [(p, p.grad, None if p.grad is None else p.grad.clone()) for p in subject.model.parameters()]
    modes = [(m, m.training) for m in subject.model.modules()]
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for parameter, gradient, values in gradients:
            if gradient is not None and not torch.equal(gradient, values):
                gradient.data.copy_(values)
            parameter.grad = gradient
        for generator, saved in generators:
            _set(generator, saved)
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        if devices:
            torch.cuda.set_rng_state_all(devices)


def _generators(thing: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """Random generators that the data source holds, a few objects deep."""
    if depth < 0 or id(thing) in seen or isinstance(thing, torch.Tensor | np.ndarray | torch.nn.Module | type):
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Generator | np.random.Generator | np.random.RandomState | random.Random):
        yield thing
        return
    # A list of a million samples is not searched: generators live in attributes, not among the data.
    if isinstance(thing, list | tuple):
        children = list(thing[:8])
    elif isinstance(thing, dict):
        children = list(thing.values())[:32]
    else:
        children = list(getattr(thing, "__dict__", {}).values())
    for child in children:
        yield from _generators(child, depth - 1, seen)


def _get(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state().clone()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def _set(generator: Any, saved: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = saved
    elif isinstance(generator, random.Random):
        generator.setstate(saved)
    else:
        generator.set_state(saved)
