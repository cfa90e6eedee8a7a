"""Grad-CAM through Captum: where a layer speaks for a class."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.inspecting.class_activation import targets_of
from sleuth.adapters.common.inspecting.layer_names import among, chosen_convolution, layer_named, require_passage
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.bench import _is_array, _tensors
from sleuth.adapters.torch.inspecting.forward_pass import passage
from sleuth.adapters.torch.inspecting.maps import convolutions
from sleuth.adapters.torch.inspecting.model_copy import guest
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.core.contract.inspection import ClassActivation
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import call_model

CAPTUM = "sleuth.gradcam needs Captum: pip install captum."


def class_activation(model: nn.Module, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
    attribution = _captum()
    given = _tensors(inputs)
    image = _image(given)
    with guest(model) as visited:
        flat = [path for path, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
        path = chosen_convolution(type(model).__name__, flat, layer, last=True)
        module = layer_named(visited.named_modules(remove_duplicate=False), path, convolutions(model), "convolution")
        run = _scores_of(visited, given)
        try:
            with torch.no_grad():
                scores = run(image)
        except UnusableInput:
            raise
        except Exception:
            require_passage(passage(model, inputs))
            raise
        targets = torch.as_tensor(targets_of(target, to_numpy(scores)), device=scores.device)
        maps = attribution.LayerGradCam(run, module).attribute(image, target=targets.tolist(), relu_attributions=True)
    maps = maps[0] if isinstance(maps, tuple) else maps
    if maps.dim() != 4:
        raise UnusableInput(
            f"{path} puts out {tuple(maps.shape)}: Grad-CAM needs a layer with a map, (samples, channels, height, width). "
            f"{among(convolutions(model), 'convolution')}"
        )
    enlarged = attribution.LayerAttribution.interpolate(maps, tuple(image.shape[2:]), interpolate_mode="bilinear")
    chosen = scores.gather(1, targets[:, None])[:, 0]
    return ClassActivation(
        path=path,
        targets=tuple(int(t) for t in targets),
        scores=tuple(float(s) for s in chosen),
        maps=to_numpy(maps[:, 0]),
        enlarged=to_numpy(enlarged[:, 0]),
        image=to_numpy(image),
    )


def _captum() -> Any:
    try:
        import captum.attr
    except ImportError:
        raise UnusableInput(CAPTUM) from None
    return captum.attr


def _image(given: Any) -> torch.Tensor:
    found = [t for _, t in leaves(given, is_tensor) if t.dim() == 4 and t.is_floating_point()]
    if not found:
        shapes = ", ".join(str(tuple(t.shape)) for _, t in leaves(given, is_tensor))
        raise UnusableInput(f"Grad-CAM needs images of shape (samples, channels, height, width) among the inputs; got {shapes}.")
    return found[0].detach().clone()


def _scores_of(model: nn.Module, given: Any) -> Any:
    """(samples, classes) of what the model returns; scores for every position are added up."""
    image = _image_in(given)

    def run(pixels: torch.Tensor) -> torch.Tensor:
        # Captum may repeat the samples; the other inputs stay as they are.
        inputs = map_arrays(given, lambda a: pixels if a is image else a.detach().clone(), _is_array)
        output = call_model(model, model.forward, inputs)
        tensors = dict(leaves(output, is_tensor))
        scores = tensors.get("logits", next((t for t in tensors.values() if t.dim() >= 2), None))
        if scores is None:
            shapes = ", ".join(str(tuple(t.shape)) for t in tensors.values())
            raise UnusableInput(f"Grad-CAM needs scores of shape (samples, classes); the model returns {shapes or 'no tensor'}.")
        return scores.flatten(2).sum(dim=2) if scores.dim() > 2 else scores

    return run


def _image_in(given: Any) -> torch.Tensor:
    return next(t for _, t in leaves(given, is_tensor) if t.dim() == 4 and t.is_floating_point())
