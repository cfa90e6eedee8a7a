"""What the losses were given, from the ops of one listened step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from sleuth import kernel
from sleuth.adapters.torch.listening import Listener, Op, is_tensor
from sleuth.core.location import Location
from sleuth.core.observation import Argument, ArrayFacts, LossCall
from sleuth.core.statistics import Statistics
from sleuth.core.tree import leaves

FAMILIES = {
    "cross_entropy": "cross-entropy",
    "nll_loss": "nll",
    "binary_cross_entropy": "bce",
    "binary_cross_entropy_with_logits": "bce-logits",
    "mse_loss": "mse",
    "l1_loss": "l1",
    "smooth_l1_loss": "huber",
    "huber_loss": "huber",
    "kl_div": "kl",
    "hinge_embedding_loss": "hinge",
    "multi_margin_loss": "hinge",
    "multilabel_margin_loss": "hinge",
    "soft_margin_loss": "hinge",
    "multilabel_soft_margin_loss": "other",
    "margin_ranking_loss": "other",
    "triplet_margin_loss": "other",
    "triplet_margin_with_distance_loss": "other",
    "cosine_embedding_loss": "other",
    "ctc_loss": "other",
    "gaussian_nll_loss": "other",
    "poisson_nll_loss": "other",
}
# Ops that move or round values without making new ones: the producer is looked for behind them.
CARRIERS = {
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "contiguous", "float",
    "double", "to", "clamp", "clip", "clamp_min", "clamp_max", "__getitem__", "expand", "movedim", "swapaxes", "mT", "T",
}  # fmt: skip
ELEMENTWISE = {
    "sub",
    "__sub__",
    "__rsub__",
    "rsub",
    "mul",
    "__mul__",
    "__rmul__",
    "add",
    "__add__",
    "div",
    "__truediv__",
    "true_divide",
    "eq",
    "ne",
}
# Beyond this the sums along axes would cost more than the step.
LARGE = 20_000_000


class LossNotes:
    """Follows output and target through the ops of the loss."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._maker: dict[int, Op] = {}
        self._sides: dict[int, set[str]] = {}
        self._calls: list[tuple[Op, Any]] = []
        self._blown: tuple[tuple[int, ...], Location | None] | None = None
        listener.on_op.append(self._op)

    def mark(self, tree: Any, side: str) -> None:
        """From here on these tensors count as `output` or `target`."""
        for _, tensor in leaves(tree, is_tensor):
            self._sides.setdefault(id(tensor), set()).add(side)
            self._listener.alive.append(tensor)

    def _op(self, op: Op, output: Any) -> None:
        sides: set[str] = set().union(*(self._sides.get(i, set()) for i in op.inputs))
        for made in op.outputs:
            if made not in op.inputs:
                self._maker[made] = op
            if sides:
                self._sides.setdefault(made, set()).update(sides)
        if op.name in FAMILIES:
            self._calls.append((op, output))
        if op.name in ELEMENTWISE and self._blown is None:
            self._note_broadcast(op, output)

    def _note_broadcast(self, op: Op, output: Any) -> None:
        pair = [a for a in op.args if is_tensor(a)]
        if len(pair) != 2 or not is_tensor(output):
            return
        one, other = (self._sides.get(id(t), set()) for t in pair)
        facing = {"output"} in (one, other) and {"target"} in (one, other)
        if facing and output.numel() > max(pair[0].numel(), pair[1].numel()):
            self._blown = (tuple(output.shape), op.location)

    def calls(self, name: str, loss: Any, outputs: Any, target: Any) -> Iterator[LossCall]:
        """Every call of a known loss; when there was none, the user's own loss as a whole."""
        value = _scalar(loss)
        shape = tuple(loss.shape) if is_tensor(loss) else ()
        for op, returned in self._calls:
            bound = _bind(op)
            arguments = tuple(self._argument(key, tensor) for key, tensor in bound.items() if is_tensor(tensor))
            options = {k: v for k, v in bound.items() if isinstance(v, int | float | bool | str)}
            options |= {f"has_{k}": True for k in ("weight", "pos_weight") if is_tensor(bound.get(k))}
            yield LossCall(
                name=op.name,
                family=FAMILIES[op.name],
                value=value if len(self._calls) == 1 else _scalar(returned),
                arguments=arguments,
                output_shape=tuple(returned.shape) if is_tensor(returned) else (),
                broadcast=_broadcast(bound) if FAMILIES[op.name] in ("mse", "l1", "huber", "kl") else None,
                reduction=bound.get("reduction", "mean"),
                options=options,
                location=op.location,
                broadcast_location=op.location,
            )
        if not self._calls:
            arguments = tuple(
                self._argument(role, tensor)
                for role, tree in (("output", outputs), ("target", target))
                for _, tensor in leaves(tree, is_tensor)
            )
            blown, place = self._blown or (None, None)
            yield LossCall(name, "other", value, arguments, shape, blown, location=place, broadcast_location=place)

    def _argument(self, key: str, tensor: torch.Tensor) -> Argument:
        sides = self._sides.get(id(tensor), set())
        if key in ("weight", "pos_weight"):
            role = "weight"
        elif sides == {"output"} or sides == {"target"}:
            role = next(iter(sides))
        else:
            role = {"input": "output", "target": "target", "output": "output"}.get(key, "other")
        maker = self._producer(tensor)
        return Argument(
            facts=array_facts(key, tensor),
            role=role,
            producer=maker.name if maker else None,
            axis_sums=_axis_sums(tensor),
            producer_location=maker.location if maker else None,
            producer_axis=_axis(maker, tensor) if maker else None,
        )

    def _producer(self, tensor: torch.Tensor) -> Op | None:
        """The op that made these values, looked for behind reshapes and clamps."""
        op = self._maker.get(id(tensor))
        for _ in range(16):
            if op is None or op.name not in CARRIERS or not op.inputs:
                return op
            op = self._maker.get(op.inputs[0])
        return op


def array_facts(path: str, array: Any) -> ArrayFacts:
    from sleuth.adapters.torch.adapter import to_numpy

    values = to_numpy(array)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    whole = float(np.mean(finite == np.floor(finite))) if finite.size else 0.0
    return ArrayFacts(
        path=path,
        shape=tuple(values.shape),
        dtype=str(array.dtype).removeprefix("torch."),
        statistics=Statistics.from_row(kernel.measure([values])[0]),
        whole_share=whole,
        device=str(array.device) if is_tensor(array) else "cpu",
    )


def _bind(op: Op) -> dict[str, Any]:
    """Arguments by name; every loss of torch.nn.functional begins with (input, target) or names its own."""
    names = {
        "cross_entropy": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
        "nll_loss": ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"),
        "binary_cross_entropy": ("input", "target", "weight", "size_average", "reduce", "reduction"),
        "binary_cross_entropy_with_logits": ("input", "target", "weight", "size_average", "reduce", "reduction", "pos_weight"),
    }.get(op.name, ("input", "target", "size_average", "reduce", "reduction"))
    return {**dict(zip(names, op.args, strict=False)), **op.kwargs}


def _broadcast(bound: dict[str, Any]) -> tuple[int, ...] | None:
    one, other = bound.get("input"), bound.get("target")
    if not (is_tensor(one) and is_tensor(other)) or one.shape == other.shape:
        return None
    try:
        shape = torch.broadcast_shapes(one.shape, other.shape)
    except RuntimeError:
        return None
    size = int(np.prod(shape))
    return tuple(shape) if size > max(one.numel(), other.numel()) else None


def _scalar(loss: Any) -> float | None:
    if is_tensor(loss):
        if loss.numel() != 1:
            return None
        loss = loss.detach().item()
    return float(loss) if isinstance(loss, int | float) and np.isfinite(loss) else None


def _axis_sums(tensor: torch.Tensor) -> tuple[tuple[float, float], ...]:
    if not tensor.is_floating_point() or tensor.dim() < 1 or tensor.numel() > LARGE or tensor.numel() == 0:
        return ()
    wide = tensor.detach().double()
    if not bool(torch.isfinite(wide).all()):
        return ()
    sums = [wide.sum(axis) for axis in range(tensor.dim())]
    return tuple((float(s.min()), float(s.max())) for s in sums)


def _axis(op: Op, tensor: torch.Tensor) -> int | None:
    axis = op.kwargs.get("dim", op.args[1] if len(op.args) > 1 else None)
    source = op.args[0] if op.args and is_tensor(op.args[0]) else tensor
    if not isinstance(axis, int) or isinstance(axis, bool):
        return None
    return axis % source.dim() if source.dim() else None
