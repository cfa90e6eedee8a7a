"""Shapes that do not fit a layer."""

import math
import re

import torch
from torch import nn

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene, sides


def _linear(match: re.Match[str], scene: Scene) -> Explained:
    rows, got, wants, out = map(int, match.groups())
    x = scene.tensor
    if not isinstance(scene.module, nn.Linear) or x is None:
        advice = f"make the inner sizes equal ({got} and {wants}): transpose one side or change the layer that made it"
        return Explained("shape", f"{wants} columns on the left", f"{rows}×{got} times {wants}×{out}", advice)
    name, change = scene.name(), f"make it Linear({got}, {out})"
    trailing = math.prod(x.shape[1:])
    if x.dim() > 2 and trailing == wants:
        change = "flatten from dim 1 before it: x.flatten(1)"
    elif x.dim() == 1 and got % wants == 0 and got > wants:
        change = "keep the batch apart: x.flatten(1) instead of x.flatten()"
    elif x.dim() == 2 and x.shape[0] == wants:
        change = "turn its input around: x.T"
    elif x.dim() > 2 and wants in x.shape:
        change = f"bring the axis of {wants} to the end: x.transpose({tuple(x.shape).index(wants)}, -1)"
    elif x.dim() == 2:
        change += " or flatten from dim 1"
    return Explained(
        "shape", f"{wants} features", f"{got} features (shape {sides(x.shape)})", f"{name} gets {got} features: {change}"
    )


def _channels(match: re.Match[str], scene: Scene) -> Explained:
    wants, got = int(match[2]), int(match[3])
    name = scene.name()
    x = scene.tensor if scene.tensor is not None else torch.empty([int(n) for n in match[1].split(",")], device="meta")
    spatial = len(getattr(scene.module, "kernel_size", ())) or x.dim() - 2
    expected, shape = f"{wants} channels", f"{got} channels (shape {sides(x.shape)})"
    batched = x.dim() == spatial + 2
    if x.shape[-1] == wants and x.dim() >= spatial + 1:
        axes = (0, x.dim() - 1, *range(1, x.dim() - 1)) if batched else (x.dim() - 1, *range(x.dim() - 1))
        change = f"the channels stand last; bring them forward: x.permute{axes}"
    elif not batched and wants == 1:
        change = "the channel axis is missing: x.unsqueeze(1)"
    elif not batched:
        change = "the batch axis is missing: x.unsqueeze(0), or let the loader make batches"
    else:
        kind = type(scene.module).__name__
        change = f"make it {kind}({got}, {getattr(scene.module, 'out_channels', '…')}, …) or give it {wants} channels"
    return Explained("shape", expected, shape, f"{name} gets {got} channels: {change}")


def _rank(match: re.Match[str], scene: Scene) -> Explained:
    wanted = [int(n) for n in re.findall(r"(\d)D", match[1])]
    got = int(match[2])
    x = scene.tensor
    shape = f"{got} axes" + (f" (shape {sides(x.shape)})" if x is not None else "")
    if got == min(wanted) - 1:
        advice = f"{scene.name()} misses the batch axis: x.unsqueeze(0), or let the loader make batches"
    elif got > max(wanted):
        advice = f"{scene.name()} gets {got} axes: flatten what is too much, such as x.flatten(1)"
    else:
        advice = f"{scene.name()} gets {got} axes: reshape its input to {' or '.join(map(str, wanted))} axes"
    return Explained("shape", " or ".join(f"{n} axes" for n in wanted), shape, advice)


def _conv_rank(match: re.Match[str], scene: Scene) -> Explained:
    size = [int(n) for n in match[2].split(",")]
    wanted = max(int(n) for n in re.findall(r"(\d)D", match[1]))
    axes = "(batch, channels, " + ", ".join(("length", "height", "width")[-(wanted - 2) :] if wanted > 3 else ("length",)) + ")"
    advice = f"{scene.name()} gets shape {sides(size)}: reshape its input to {axes}, such as x.reshape(-1, 1, 28, 28)"
    return Explained("shape", axes, sides(size), advice)


def _flatten_axis(match: re.Match[str], scene: Scene) -> Explained:
    x = scene.tensor if scene.tensor is not None else next(iter(scene.operands), None)
    shape = sides(x.shape) if x is not None else f"axes {match[1]}"
    advice = f"axis {match[2]} does not exist in shape {shape}: add the batch axis with x.unsqueeze(0), or count the axes anew"
    return Explained("shape", f"an axis {match[2]}", shape, advice)


def _features(match: re.Match[str], scene: Scene) -> Explained:
    wants, got = match["wants"], match["got"]
    x = scene.tensor
    shape = f"{got} features" + (f" (shape {sides(x.shape)})" if x is not None else "")
    name = scene.name()
    size = {"input_size": "input_size", "embedding": "embed_dim"}.get(match.groupdict().get("what") or "", "its size")
    advice = f"{name} gets {got} features: set {size} to {got}, or give it {wants}"
    if x is not None and x.dim() == 3 and int(wants) in x.shape[:-1]:
        advice = f"{name} gets {got} features: turn its input around, x.transpose({tuple(x.shape).index(int(wants))}, 2)"
    return Explained("shape", f"{wants} features", shape, advice)


def _hidden(match: re.Match[str], scene: Scene) -> Explained:
    kind = type(scene.module).__name__ if scene.module is not None else "the layer"
    advice = f"make the hidden state {match[1]}; if the batch stands first in x, build {kind} with batch_first=True"
    return Explained("shape", f"hidden state {match[1]}", match[2], advice)


def _mask(match: re.Match[str], scene: Scene) -> Explained:
    advice = f"give the mask the shape {match[2]}; attention takes (length, batch, features) unless batch_first=True"
    return Explained("shape", f"mask {match[2]}", f"mask {match[1]}", advice)


def _normalised(match: re.Match[str], scene: Scene) -> Explained:
    got = match[2].split(",")[-1].strip()
    return Explained(
        "shape", f"shape [*, {match[1]}]", f"shape [{match[2]}]", f"make it LayerNorm({got}), or give it {match[1]} features"
    )


def _running(match: re.Match[str], scene: Scene) -> Explained:
    got, wants = match[1], match[2]
    kind = type(scene.module).__name__ if scene.module is not None else "the normalisation"
    return Explained(
        "shape", f"{wants} channels", f"{got} channels", f"{kind}({wants}) gets {got} channels: make it {kind}({got})"
    )


def _elementwise(match: re.Match[str], scene: Scene) -> Explained:
    a, b, axis = match.groups()
    shapes = " and ".join(sides(t.shape) for t in scene.operands[:2])
    got = f"{shapes or f'{a} and {b}'} (axis {axis})"
    advice = (
        f"give both sides the same size on axis {axis} ({a} and {b}): add a layer that turns {a} into {b}, or reshape one side"
    )
    return Explained("shape", "equal sizes", got, advice)


def _concatenate(match: re.Match[str], scene: Scene) -> Explained:
    axis, a, b = match.groups()
    advice = f"join along another axis, torch.cat(…, dim=…), or make the sizes {a} and {b} equal; only axis {axis} may differ"
    return Explained("shape", f"size {a} outside axis {axis}", f"size {b}", advice)


def _view(match: re.Match[str], scene: Scene) -> Explained:
    advice = f"{match[2]} values do not divide into ({match[1]}): use x.reshape(x.shape[0], -1) and match the next layer to it"
    return Explained("shape", f"a multiple of ({match[1]})", f"{match[2]} values", advice)


def _stride(match: re.Match[str], scene: Scene) -> Explained:
    return Explained("shape", "contiguous memory", "a transposed view", "use x.reshape(…) instead of x.view(…)")


def _small(match: re.Match[str], scene: Scene) -> Explained:
    x = scene.tensor
    got = f"shape {sides(x.shape)}" if x is not None else match[0]
    advice = f"{scene.name()} gets an image smaller than its window: pool less before it, add padding, or use larger images"
    return Explained("shape", "an image at least as large as the window", got, advice)


def _batched_product(match: re.Match[str], scene: Scene) -> Explained:
    advice = "transpose the last two axes of one side, such as k.transpose(-2, -1), or make their sizes equal"
    return Explained("shape", f"[{match[1]}]", f"[{match[2]}]", advice)


SHAPES = Patterns(
    (
        (r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _linear),
        (r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels", _channels),
        (r"expected ((?:\dD(?: or )?)+) input \(got (\d)D input\)", _rank),
        (r"Expected (\dD \(unbatched\) or \dD \(batched\)) input to \w+, but got input of size: \[([\d, ]+)\]", _conv_rank),
        (r"[Ee]xpected input to be ((?:\dD(?: or )?)+), got (\d)D", _rank),
        (r"(?:should be )(unbatched \dD or batched \dD) tensor but received (\d)-D", _rank),
        (r"Dimension out of range \(expected to be in range of (\[[-\d, ]+\]), but got (-?\d+)\)", _flatten_axis),
        (r"must be equal to (?P<what>input_size)\. Expected (?P<wants>\d+), got (?P<got>\d+)", _features),
        (r"inconsistent (?P<what>input_size):? got (?P<got>\d+),? expected (?P<wants>\d+)", _features),
        (r"expecting (?P<what>embedding) dimension of (?P<wants>\d+), but got (?P<got>\d+)", _features),
        (r"Expected hidden(?:\[\d\])? size (\([\d, ]+\)), got (\[[\d, ]+\])", _hidden),
        (r"attn_mask is torch\.Size\((\[[\d, ]+\])\), but should be (\([\d, ]+\))", _mask),
        (r"normalized_shape=\[([\d, ]+)\], expected input with shape .*, but got input of size ?\[([\d, ]+)\]", _normalised),
        (r"running_mean should contain (\d+) elements not (\d+)", _running),
        (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", _elementwise),
        (r"Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+)", _concatenate),
        (r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", _view),
        (r"view size is not compatible with input tensor's size and stride", _stride),
        (r"Kernel size can't be greater than actual input size|Output size is too small", _small),
        (r"first two dimensions of batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]", _batched_product),
        (r"(?i)size mismatch|must match|shape|dimension|same size|broadcast|key_padd\w*mask", lambda m, s: Explained("shape")),
    )
)  # fmt: skip
