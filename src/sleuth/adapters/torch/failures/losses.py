"""Outputs and targets that a loss refuses."""

import math
import re
from dataclasses import replace
from typing import Any

import torch

from sleuth.adapters.torch.failures.batch_axis import lost_at
from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene


def shapes(scene: Scene) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Of output and target; of the two sides of the operation that failed in a loss written by hand."""
    if isinstance(scene.input, torch.Tensor) and isinstance(scene.target, torch.Tensor):
        return tuple(scene.input.shape), tuple(scene.target.shape)
    if len(scene.operands) == 2:
        return tuple(scene.operands[0].shape), tuple(scene.operands[1].shape)
    return None


def _explain(scene: Scene, expected: str, advice: str) -> Explained:
    pair = shapes(scene)
    one, other = ("output", "target")
    if pair and not isinstance(scene.target, torch.Tensor):
        one, other = (scene.name_of(t) or word for t, word in zip(scene.operands, ("one side", "the other"), strict=True))
    got = f"{one} {pair[0]}, {other} {pair[1]}" if pair else None
    return Explained("shape", expected, got, advice)


def _batch_sizes(match: re.Match[str], scene: Scene) -> Explained:
    out, target = match.groups()
    pair = shapes(scene)
    advice = f"the output has {out} rows, the target {target}: look for a reshape in the model that touches the batch axis"
    if pair and len(pair[0]) == 3 and len(pair[1]) == 1 and math.prod(pair[0][:2]) == pair[1][0]:
        advice = f"flatten the output as the target is: output.reshape(-1, {pair[0][-1]})"
    elif pair and len(pair[0]) == 2 and math.prod(pair[1]) == pair[0][0]:
        advice = "flatten the target as the output is: target.reshape(-1)"
    elif (lost := lost_at(scene, int(target))) is not None:
        return replace(_explain(scene, f"{target} rows for {target} targets", lost[1]), location=lost[0])
    return _explain(scene, f"{target} rows for {target} targets", advice)


def _no_batch(match: re.Match[str], scene: Scene) -> Explained:
    samples = int(match[1])
    expected = f"an output of {samples} rows"
    if (lost := lost_at(scene, samples)) is not None:
        return replace(_explain(scene, expected, lost[1]), location=lost[0])
    return _explain(
        scene, expected, "the output has lost the axis of the samples: look for mean(0), squeeze(), or x[0] in forward"
    )


def _class_axis(match: re.Match[str], scene: Scene) -> Explained:
    pair = shapes(scene)
    advice = "give the target the output's shape without the class axis, which is axis 1"
    if pair and len(pair[0]) == 3 and pair[0][:2] == pair[1]:
        advice = "put the classes on axis 1: output.transpose(1, 2)"
    elif pair and len(pair[1]) == len(pair[0]) and pair[1][1:2] == (1,):
        advice = "drop the target's axis of one: target.squeeze(1)"
    return _explain(scene, "one class index for every position, classes on axis 1", advice)


def _one_column(match: re.Match[str], scene: Scene) -> Explained:
    pair = shapes(scene)
    advice = "give one class index a sample: target.argmax(1) for one-hot targets, target.squeeze(1) for a column"
    if pair and pair[1][1:] == (1,):
        advice = "drop the target's axis of one: target.squeeze(1)"
    elif pair and pair[1] == pair[0]:
        advice = "turn the one-hot targets into class indices: target.argmax(1)"
    elif pair and len(pair[1]) == 2:
        advice = (
            f"the target has {pair[1][1]} columns, the output {pair[0][-1]}: give one class index a sample, or match the widths"
        )
    return _explain(scene, "a target of shape (N,)", advice)


def _whole_probabilities(match: re.Match[str], scene: Scene) -> Explained:
    pair = shapes(scene)
    if pair and len(pair[0]) == 1:
        return _explain(
            scene,
            "an output of shape (N, classes)",
            "the output has no class axis: give the last layer one unit a class and do not squeeze it",
        )
    advice = "turn the one-hot targets into class indices, target.argmax(1), or into probabilities, target.float()"
    return _explain(scene, "class indices (N,) or floating probabilities (N, K)", advice)


def _same_size(match: re.Match[str], scene: Scene) -> Explained:
    pair = shapes(scene)
    advice = "give output and target the same shape"
    if pair and pair[0] == (*pair[1], 1):
        advice = "add the missing axis to the target: target.unsqueeze(-1)"
    elif pair and pair[1] == (*pair[0], 1):
        advice = "drop the target's last axis: target.squeeze(-1)"
    elif pair and pair[0][:1] == pair[1] and len(pair[0]) == 2 and not isinstance(scene.target, torch.Tensor):
        classes = pair[0][1]
        advice = f"make one row of {classes} out of each class: one_hot(y, {classes}).float(), or add the axis: y.unsqueeze(1)"
    elif pair and pair[0][:1] == pair[1] and len(pair[0]) == 2:
        advice = (
            f"the output has {pair[0][1]} columns and the target one value a sample: use cross-entropy for classes, or one output"
        )
    elif pair and len(pair[0]) == len(pair[1]) and pair[0][:-1] == pair[1][:-1]:
        advice = f"give the last layer {pair[1][-1]} outputs instead of {pair[0][-1]}"
    return _explain(scene, "equal shapes", advice)


def _target_dtype(match: re.Match[str], scene: Scene) -> Explained:
    got = str(getattr(scene.target, "dtype", match[1])).removeprefix("torch.")
    advice = "cross-entropy takes class indices: target.long(); for real values use a regression loss"
    return Explained("dtype", "int64 class indices", got, advice)


def _float_target(match: re.Match[str], scene: Scene) -> Explained:
    got = str(getattr(scene.target, "dtype", "int64")).removeprefix("torch.")
    return Explained("dtype", "floating targets", got, "convert the target: target.float()")


def _out_of_bounds(match: re.Match[str], scene: Scene) -> Explained:
    pair = shapes(scene)
    classes = pair[0][1 if len(pair[0]) > 1 else 0] if pair else None
    label = int(match[1])
    if classes is None:
        return Explained("index", None, f"label {label}", "count the classes from 0 and give the last layer one unit a class")
    cure = (
        f"give the last layer {label + 1} units, or count the classes from 0"
        if label >= 0
        else "set ignore_index, or map it to a class"
    )
    return Explained("index", f"labels from 0 to {classes - 1}", f"label {label}", f"{cure} (the output has {classes} classes)")


def _probabilities(match: re.Match[str], scene: Scene) -> Explained:
    which = match[1]
    thing: Any = scene.input if which == "input" else scene.target
    got = None
    if isinstance(thing, torch.Tensor) and thing.numel():
        got = f"{which} from {float(thing.detach().min()):.3g} to {float(thing.detach().max()):.3g}"
    advice = "put a sigmoid before it, or use BCEWithLogitsLoss" if which == "input" else "scale the target to 0 … 1"
    return Explained("value", "values between 0 and 1", got, advice)


def _weights(match: re.Match[str], scene: Scene) -> Explained:
    return Explained(
        "value", f"{match[1]} class weights", f"weights of shape {match[2]}", f"give one weight a class: {match[1]} of them"
    )


def _negative_variance(match: re.Match[str], scene: Scene) -> Explained:
    advice = "make the variance positive: softplus(v) + 1e-6, or let the layer give its logarithm and take exp"
    return Explained("value", "a variance above 0", "a negative one", advice)


LOSSES = Patterns(
    (
        (r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", _batch_sizes),
        (r"Expected target size \[[\d, ]+\], got|size mismatch \(got input|only batches of spatial targets", _class_axis),
        (r"For 1D input, 1D target must have size 1, but got target size: (\d+)", _no_batch),
        (r"multi-target not supported|1D target tensor expected", _one_column),
        (r"Expected floating point type for target with class probabilities, got (\w+)", _whole_probabilities),
        (r"different to the input size|must be the same as input size|size of tensor a \(\d+\) must match", _same_size),
        (r"expected target dtype to be Long or Byte, but got (\w+)|expected scalar type Long but found (\w+)", _target_dtype),
        (r"Found dtype \w+ but expected \w+|can't be cast to the desired output type", _float_target),
        (r"Target (-?\d+) is out of bounds", _out_of_bounds),
        (r"all elements of (input|target) should be between 0 and 1", _probabilities),
        (r"var has negative entry", _negative_variance),
        (r"weight tensor should be defined either for all (\d+) classes .* shape: (\[[\d, ]+\])", _weights),
    )
)  # fmt: skip
