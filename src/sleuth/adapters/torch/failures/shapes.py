"""Shapes that do not fit a layer."""

import math
import re

import torch
from torch import nn

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene, count, sides


def _linear(match: re.Match[str], scene: Scene) -> Explained:
    rows, got, wants, out = map(int, match.groups())
    x = scene.tensor
    if isinstance(scene.module, nn.MultiheadAttention):
        return _keys(scene.module, scene, got)
    if not isinstance(scene.module, nn.Linear) or x is None:
        advice = f"make the inner sizes equal ({got} and {wants}): transpose one side or change the layer that made it"
        return Explained("shape", f"{wants} columns on the left", f"{rows}×{got} times {wants}×{out}", advice)
    name, change = scene.name(), f"make it Linear({got}, {out})"
    trailing = math.prod(x.shape[1:])
    if x.dim() > 2 and trailing == wants:
        change = "flatten from dim 1 before it: x.flatten(1)"
    elif x.dim() == 1 and got % wants == 0 and got > wants:
        change = "keep the batch apart: x.flatten(1) instead of x.flatten()"
    elif x.dim() == 2 and x.numel() == wants:
        change = "these are the rows of one sample; the batch axis is missing: x.unsqueeze(0), or let the loader make batches"
    elif x.dim() == 2 and x.shape[0] == wants != scene.rows:
        change = "turn its input around: x.T"
    elif (both := _two_directions(scene, wants)) is not None and got == 2 * wants:
        change = f"{both} gives {got} features, {wants} in each direction: make it Linear({got}, {out})"
    elif x.dim() > 2 and wants in x.shape:
        change = f"bring the axis of {wants} to the end: x.transpose({tuple(x.shape).index(wants)}, -1)"
    elif x.dim() == 2:
        change += " or flatten from dim 1"
    return Explained(
        "shape", f"{wants} features", f"{got} features (shape {sides(x.shape)})", f"{name} gets {got} features: {change}"
    )


def _two_directions(scene: Scene, hidden: int) -> str | None:
    modules = scene.model.modules() if scene.model is not None else ()
    both = (m for m in modules if isinstance(m, nn.RNNBase) and m.bidirectional and m.hidden_size == hidden)
    return next((f"the bidirectional {type(m).__name__}" for m in both), None)


def _keys(module: nn.MultiheadAttention, scene: Scene, got: int) -> Explained:
    wants, heads = module.embed_dim, module.num_heads
    advice = (
        f"{scene.name()} gets keys and values of {got} features: build it as MultiheadAttention({wants}, {heads}, kdim={got}, "
        f"vdim={got}), or bring them to {wants} with nn.Linear({got}, {wants})"
    )
    return Explained("shape", f"keys and values of {wants} features", f"{got} features", advice)


def _channels(match: re.Match[str], scene: Scene) -> Explained:
    wants, got = int(match[2]), int(match[3])
    name = scene.name()
    x = scene.tensor if scene.tensor is not None else torch.empty([int(n) for n in match[1].split(",")], device="meta")
    spatial = len(getattr(scene.module, "kernel_size", ())) or x.dim() - 2
    expected, shape = count(wants, "channel"), f"{count(got, 'channel')} (shape {sides(x.shape)})"
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
        out = getattr(scene.module, "out_channels", "…")
        change = f"make it {kind}({got}, {out}, …) or give it {expected}"
    return Explained("shape", expected, shape, f"{name} gets {count(got, 'channel')}: {change}")


def _rank(match: re.Match[str], scene: Scene) -> Explained:
    wanted = [int(n) for n in re.findall(r"(\d)D", match[1])]
    got = int(match[2])
    x = scene.tensor
    shape = count(got, "axis") + (f" (shape {sides(x.shape)})" if x is not None else "")
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
    x = next(iter(scene.operands), scene.tensor)
    if x is None:
        return Explained(
            "shape", f"an axis {match[2]}", f"axes {match[1]}", f"axis {match[2]} does not exist: count the axes from 0"
        )
    cure = "the batch axis is missing, x.unsqueeze(0)"
    if x.dim() > 1 and x.shape[0] == scene.rows:
        cure = "count the axes from 0, or name the last one: dim=-1"
    return Explained(
        "shape", f"an axis {match[2]}", sides(x.shape), f"axis {match[2]} does not exist in shape {sides(x.shape)}: {cure}"
    )


def _features(match: re.Match[str], scene: Scene) -> Explained:
    wants, got = int(match["wants"]), int(match["got"])
    x = scene.tensor
    name = scene.name()
    shape = f"{got} features" + (f" (shape {sides(x.shape)})" if x is not None and match["what"] == "input_size" else "")
    if x is not None and x.dim() == 3 and wants in x.shape[1:-1]:
        change = f"turn its input around, x.transpose({tuple(x.shape).index(wants)}, 2)"
    elif match["what"] == "input_size":
        change = f"make it {type(scene.module).__name__}({got}, {getattr(scene.module, 'hidden_size', '…')})"
        change += f" or bring its input to {wants} features"
    else:
        word = "d_model" if scene.path and "self_attn" in scene.path else "embed_dim"
        change = f"set {word} to {got}, or bring its input to {wants} features with nn.Linear({got}, {wants})"
    return Explained("shape", f"{wants} features", shape, f"{name} gets {got} features: {change}")


def _hidden(match: re.Match[str], scene: Scene) -> Explained:
    kind = type(scene.module).__name__ if scene.module is not None else "the layer"
    wants, got = ([int(n) for n in re.findall(r"\d+", text)] for text in match.groups())
    advice = f"make the hidden state {match[1]}; if the batch stands first in x, build {kind} with batch_first=True"
    if len(wants) == len(got) == 3 and (wants[0], wants[2]) == (got[0], got[2]):
        advice = f"make it as large as the batch: torch.zeros({wants[0]}, x.shape[0], {wants[2]})"
        if not getattr(scene.module, "batch_first", False):
            advice += f"; if the batch stands first in x, build {kind} with batch_first=True"
    return Explained("shape", f"a hidden state {match[1]}", sides(got), advice)


def _mask(match: re.Match[str], scene: Scene) -> Explained:
    advice = f"give the mask the shape {match[2]}; attention takes (length, batch, features) unless batch_first=True"
    return Explained("shape", f"mask {match[2]}", f"mask {match[1]}", advice)


def _normalised(match: re.Match[str], scene: Scene) -> Explained:
    axes = len(match[1].split(","))
    ending = [int(n) for n in match[2].split(",")][-axes:]
    size = str(ending[0]) if axes == 1 else str(ending)
    return Explained(
        "shape", f"shape [*, {match[1]}]", f"shape [{match[2]}]", f"make it LayerNorm({size}), or give it [*, {match[1]}]"
    )


def _group(match: re.Match[str], scene: Scene) -> Explained:
    wants, got = int(match[1]), int(match[2].split(",")[1])
    groups = getattr(scene.module, "num_groups", "…")
    advice = f"GroupNorm({groups}, {wants}) gets {count(got, 'channel')}: make it GroupNorm({groups}, {got})"
    return Explained("shape", count(wants, "channel"), f"{count(got, 'channel')} (shape [{match[2]}])", advice)


def _running(match: re.Match[str], scene: Scene) -> Explained:
    got, wants = match[1], match[2]
    kind = type(scene.module).__name__ if scene.module is not None else "the normalisation"
    return Explained(
        "shape", f"{wants} channels", f"{got} channels", f"{kind}({wants}) gets {got} channels: make it {kind}({got})"
    )


def _view(match: re.Match[str], scene: Scene) -> Explained:
    advice = f"{match[2]} values do not divide into ({match[1]}): use x.reshape(x.shape[0], -1) and match the next layer to it"
    return Explained("shape", f"a multiple of ({match[1]})", f"{match[2]} values", advice)


def _stride(match: re.Match[str], scene: Scene) -> Explained:
    return Explained("shape", "contiguous memory", "a transposed view", "use x.reshape(…) instead of x.view(…)")


def _small(match: re.Match[str], scene: Scene) -> Explained:
    x = scene.tensor
    got = f"shape {sides(x.shape)}" if x is not None else match[0]
    window = getattr(scene.module, "kernel_size", None)
    named = f" of {window if isinstance(window, int) else '×'.join(map(str, window))}" if window else ""
    left = "×".join(map(str, x.shape[2:])) if x is not None else "too few"
    advice = f"{scene.name()} slides a window{named} over maps of {left}: pool less before it, add padding, or use larger images"
    return Explained("shape", f"maps at least as large as its window{named}", got, advice)


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
        (r"but got weight of shape \[(\d+)\] and input of shape \[([\d, ]+)\]", _group),
        (r"running_mean should contain (\d+) elements not (\d+)", _running),
        (r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", _view),
        (r"view size is not compatible with input tensor's size and stride", _stride),
        (r"Kernel size can't be greater than actual input size|Output size is too small", _small),
        (r"(?i)size mismatch|must match|shape|dimension|same size|broadcast|key_padd\w*mask", lambda m, s: Explained("shape")),
    )
)  # fmt: skip
