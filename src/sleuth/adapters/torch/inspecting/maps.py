"""Weights of convolutions and what layers put out, as arrays."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named, layers_wanted, require_passage
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.inspecting.forward_pass import passage
from sleuth.adapters.torch.inspecting.model_copy import call, guest
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.inspection import Kernels, Maps
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves

Convolution = nn.modules.conv._ConvNd


def convolutions(model: nn.Module) -> list[str]:
    return [path for path, module in model.named_modules() if isinstance(module, Convolution)]


def kernels(model: nn.Module, layer: str | None) -> Kernels:
    known = convolutions(model)
    path = chosen_convolution(type(model).__name__, known, layer, last=False)
    module = layer_named(model.named_modules(remove_duplicate=False), path, known, "convolution")
    if not isinstance(module, Convolution):
        raise UnusableInput(f"{path} is of kind {type(module).__name__}, not a convolution. {among(known, 'convolution')}")
    if nn.parameter.is_lazy(module.weight):
        raise UnusableInput(f"{path} has no weights yet, because it is lazy. Run the model once on a batch.")
    weight = module.weight.transpose(0, 1) if module.transposed and module.groups == 1 else module.weight
    return Kernels(path, type(module).__name__, to_numpy(weight).copy())


def maps(model: nn.Module, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
    known = [path for path, _ in model.named_modules() if path]
    wanted = layers_wanted(type(model).__name__, known, convolutions(model), layers)
    found: list[Maps] = []
    with guest(model) as visited, torch.no_grad():
        handles = []
        for path in wanted:
            module = visited.get_submodule(path)
            handles.append(module.register_forward_hook(_noting(path, found)))
        try:
            call(visited, inputs)
        except Exception:
            require_passage(passage(model, inputs))
            raise
        finally:
            for handle in handles:
                handle.remove()
    if not found:
        raise UnusableInput(f"the forward pass does not reach {', '.join(wanted)}, or it puts out no tensor.")
    return tuple(found)


def _noting(path: str, found: list[Maps]) -> Any:
    def note(module: nn.Module, args: Any, output: Any) -> None:
        tensor = next((t for _, t in leaves(output, is_tensor)), None)
        if tensor is not None:
            found.append(Maps(path, type(module).__name__, to_numpy(tensor).copy()))

    return note
