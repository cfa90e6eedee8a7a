"""Why backward cannot run."""

import re

import torch

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene


def _no_graph(match: re.Match[str], scene: Scene) -> Explained:
    advice = (
        "let the loss depend on a trainable parameter: look for detach(), .data, .item(), numpy(), no_grad, argmax, "
        "or a model that is frozen as a whole"
    )
    return Explained("graph", "a loss with a graph", "a loss that needs no gradient", advice)


def _in_place(match: re.Match[str], scene: Scene) -> Explained:
    # A weight, or a view of one, has no maker.
    shape, maker = match[1], (match[2] or "").rpartition(":")[2].removesuffix("Backward0").lower()
    advice = (
        "write it without changing the tensor in place (x = x + y, not x += y; relu(x), not relu_(x)), "
        "or change a copy: x.clone()"
    )
    return Explained(
        "graph",
        f"the output of {maker} unchanged until backward" if maker else "every tensor unchanged until backward",
        f"a tensor of shape {shape} changed in place",
        advice,
    )


def _leaf(match: re.Match[str], scene: Scene) -> Explained:
    return Explained(
        "graph",
        "weights that only the optimiser changes",
        "a weight changed in place",
        "change a copy, w = w.clone(), or do it under torch.no_grad()",
    )


def _twice(match: re.Match[str], scene: Scene) -> Explained:
    advice = "cut what lives on from one step to the next: hidden = hidden.detach(), and keep running totals with loss.item()"
    return Explained("graph", "a new graph for every step", "a graph that an earlier backward used up", advice)


def _numpy(match: re.Match[str], scene: Scene) -> Explained:
    return Explained("graph", None, None, "write x.detach().numpy(); if the loss needs the values, stay in torch")


def _not_scalar(match: re.Match[str], scene: Scene) -> Explained:
    got = match[1] if match.groups() else "several numbers"
    advice = "average the loss: loss.mean(), or reduction='mean'"
    if got == "None":
        advice = "return the loss; a `return` is missing in the function that computes it"
    elif "tensor" not in got:
        advice = "keep the loss a tensor: no .item(), float(…) or numpy() before it is returned"
    return Explained("graph", "one number", got, advice)


def _inference(match: re.Match[str], scene: Scene) -> Explained:
    tensor = next((t for t in (*scene.operands, *scene.given) if isinstance(t, torch.Tensor) and t.is_inference()), None)
    maker = next((op for op in scene.ops if id(tensor) in op.outputs), None)
    return Explained(
        "graph",
        "tensors that may carry a graph",
        "a tensor made under torch.inference_mode()",
        "take the computation before it out of the torch.inference_mode() block or decorator",
        maker.location if maker is not None else None,
    )


BACKWARD = Patterns(
    (
        (r"the loss is not one number but (.+?);", _not_scalar),
        (r"grad can be implicitly created only for", _not_scalar),
        (r"does not require grad and does not have a grad_fn", _no_graph),
        (r"modified by an inplace operation: \[[\w.]+ (\[[\d, ]*\])\](?:, which is output \d+ of ([\w:]+))?", _in_place),
        (r"leaf Variable that requires grad is being used in an in-place operation", _leaf),
        (r"backward through the graph a second time", _twice),
        (r"Inference tensors cannot be saved for backward", _inference),
        (r"Can't call numpy\(\) on Tensor that requires grad", _numpy),
    )
)
