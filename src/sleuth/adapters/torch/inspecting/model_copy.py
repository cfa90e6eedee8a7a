"""A copy of the model to look at; where it cannot be copied, the model itself, put back on every way out."""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.bench import _is_array, _tensors, quiet
from sleuth.adapters.torch.copying import deep_copy
from sleuth.adapters.torch.state import preserved
from sleuth.core.runtime.randomness import generators, put_state, random_preserved, state_of
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Subject, call_model

# Above this the copy shares the memory of the parameters: two of a large model may not fit.
MOST_COPIED_BYTES = 1 << 30


@contextmanager
def guest(model: nn.Module, *, as_is: bool = False) -> Iterator[nn.Module]:
    """In eval mode unless `as_is`. Every layer computes by itself: fused paths that skip layers are off."""
    with ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(_random_kept(model))
        stack.enter_context(_layer_by_layer())
        try:
            visited = deep_copy(model, _shared(model))
        except Exception:  # it may hold what cannot be copied: locks, graphs, open files
            stack.enter_context(preserved(Subject(model, None)))
            stack.enter_context(_put_back(model))
            visited = model
        if not as_is:
            visited.eval()
        yield visited


def call(model: nn.Module, inputs: Any) -> Any:
    """On copies of the inputs: a forward may write into them."""
    native = map_arrays(_tensors(inputs), lambda a: a.detach().clone(), _is_array)
    return call_model(model, model.forward, native)


def _shared(model: nn.Module) -> dict[int, Any]:
    parameters = list(model.parameters())
    lazy = any(nn.parameter.is_lazy(p) for p in parameters)
    if lazy or sum(p.numel() * p.element_size() for p in parameters) <= MOST_COPIED_BYTES:
        return {}
    return {id(p): nn.Parameter(p.detach(), requires_grad=p.requires_grad) for p in parameters}


@contextmanager
def _random_kept(model: nn.Module) -> Iterator[None]:
    closed = (torch.Tensor, nn.Module)
    held = [(g, state_of(g)) for m in model.modules() for g in generators(vars(m), (torch.Generator,), closed)]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with random_preserved(()), torch.random.fork_rng(devices):
        try:
            yield
        finally:
            for generator, state in held:
                put_state(generator, state)


@contextmanager
def _layer_by_layer() -> Iterator[None]:
    """A fused transformer layer calls none of its parts, and a fused LSTM none of the operations that are counted."""
    fused, onednn, cudnn = (
        torch.backends.mha.get_fastpath_enabled(),
        torch._C._get_mkldnn_enabled(),
        torch._C._get_cudnn_enabled(),
    )
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        torch._C._set_mkldnn_enabled(onednn)
        torch._C._set_cudnn_enabled(cudnn)


@contextmanager
def _put_back(model: nn.Module) -> Iterator[None]:
    """Values of parameters and buffers, which are trained, and every attribute of every module."""
    trained = [(p, p.requires_grad) for p in model.parameters()]
    tensors = [(t, t.detach().clone()) for t in (*model.parameters(), *model.buffers()) if not nn.parameter.is_lazy(t)]
    attributes = [(m, {k: _shallow(v) for k, v in vars(m).items()}) for m in model.modules()]
    try:
        yield
    finally:
        for module, held in attributes:
            vars(module).clear()
            vars(module).update(held)
        for parameter, wanted in trained:
            parameter.requires_grad_(wanted)
        for tensor, values in tensors:
            if not torch.equal(tensor, values):
                tensor.data.copy_(values)


def _shallow(thing: Any) -> Any:
    return copy.copy(thing) if type(thing) in (dict, list, set) else thing
