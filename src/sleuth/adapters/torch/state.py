"""Leaving everything as it was: random states, gradients, modes, loader generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sleuth.adapters.torch.loader_workers import workers_kept
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    cpu = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    gradients = [(p, p.grad, None if p.grad is None else p.grad.clone()) for p in subject.model.parameters()]
    modes = [(m, m.training) for m in subject.model.modules()]
    sources = (subject.train, subject.validation)
    closed = (torch.Tensor, torch.nn.Module)
    with workers_kept(*sources), random_preserved(sources, kinds=(torch.Generator,), closed=closed):
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for parameter, gradient, values in gradients:
                if gradient is not None and values is not None and not torch.equal(gradient, values):
                    gradient.data.copy_(values)
                parameter.grad = gradient
            torch.set_rng_state(cpu)
            if devices:
                torch.cuda.set_rng_state_all(devices)
