"""What the losses were given, from the ops of one listened step."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from sleuth.adapters.common.loss_family import recognise
from sleuth.adapters.torch.arrays import array_facts, to_numpy
from sleuth.adapters.torch.axis_sums import axis_sums, exp_sums
from sleuth.adapters.torch.pass_listener import Listener, Op, is_tensor
from sleuth.core.location import Location
from sleuth.core.observation import Argument, LossCall
from sleuth.core.runtime.tree import leaves

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
    **dict.fromkeys(
        (
            "multilabel_soft_margin_loss", "margin_ranking_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
            "cosine_embedding_loss", "gaussian_nll_loss", "poisson_nll_loss",
        ),
        "other",
    ),
    "ctc_loss": "ctc",
}  # fmt: skip
# Losses that compare element by element, and let shapes that differ broadcast; swapping their sides changes nothing.
SYMMETRIC = ("mse", "l1", "huber")
BROADCASTING = (*SYMMETRIC, "kl")
# What a loss by hand may do to the output first.
SQUASHING = {"softmax", "log_softmax", "sigmoid", "logsigmoid"}
# Larger outputs are not put to a loss again to find out which one it is.
ASKED = 1_000_000
# Ops that move or round values without making new ones: the producer is looked for behind them.
CARRIERS = {
    "view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "contiguous", "float",
    "double", "half", "bfloat16", "to", "type", "type_as", "clamp", "clip", "clamp_min", "clamp_max", "__getitem__", "select",
    "expand", "movedim", "swapaxes", "mT", "T", "clone", "detach", "view_as", "reshape_as", "expand_as", "requires_grad_",
    "nan_to_num",
}  # fmt: skip
# Ops that insert an axis of one: whoever does that to both sides wants every pair.
AXIS_MAKERS = {"unsqueeze", "__getitem__", "view", "reshape", "expand"}
ELEMENTWISE = {
    "sub", "__sub__", "__rsub__", "rsub", "subtract", "mul", "__mul__", "__rmul__", "multiply", "add", "__add__", "__radd__",
    "div", "__truediv__", "__rtruediv__", "__rdiv__", "true_divide",
}  # fmt: skip
INVERSES = {"reciprocal", "__rtruediv__", "__rdiv__", "div", "true_divide", "__truediv__"}
ROLES = {"input": "output", "output": "output", "log_probs": "output", "target": "target", "targets": "target"}
SAME_MEANING = {"special_expit": "sigmoid", "expit": "sigmoid", "softmax2d": "softmax", "gumbel_softmax": "softmax"}


Ask = Callable[[torch.Tensor], Any]


@dataclass(frozen=True)
class Made:
    """The op that made the values of a tensor; reshapes, casts and clamps are passed over."""

    name: str
    location: Location | None
    axis: int | None
    behind: str | None


class LossNotes:
    """Follows output and target through the ops of the loss."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._made: dict[int, Made] = {}
        self._last: dict[int, str] = {}  # tensor → the op that returned it, carriers included
        self._sides: dict[int, set[str]] = {}
        self._calls: list[tuple[Op, Any]] = []
        self._blown: tuple[torch.Tensor, Location | None, list[torch.Tensor]] | None = None
        self._squashed: list[tuple[str, torch.Tensor, torch.Tensor]] = []  # the op, what it got, what it made
        listener.on_op.append(self._op)
        listener.on_failure.append(self._failure)

    @property
    def blown(self) -> tuple[torch.Tensor, Location | None, dict[str, torch.Tensor]] | None:
        """Where output and target became larger together than either was: what they became, the line, and both sides."""
        if self._blown is None:
            return None
        made, place, pair = self._blown
        return made, place, {next(iter(self._sides[id(t)])): t for t in pair}

    def mark(self, tree: Any, side: str) -> None:
        """From here on these tensors count as `output` or `target`."""
        for _, tensor in leaves(tree, is_tensor):
            self._sides.setdefault(id(tensor), set()).add(side)
            self._listener.alive.append(tensor)

    def _failure(self, op: Op) -> None:
        if op.name in FAMILIES:
            self._calls.append((op, None))

    def _op(self, op: Op, output: Any) -> None:
        sides: set[str] = set().union(*(self._sides.get(i, set()) for i in op.inputs))
        for made in op.outputs:
            self._note_maker(op, made)
            if sides:
                self._sides.setdefault(made, set()).update(sides)
        if op.name in FAMILIES:
            self._calls.append((op, output))
        if op.name in ELEMENTWISE and self._blown is None:
            self._note_broadcast(op, output)
        given = op.args[0] if op.args else None
        if sides == {"output"} and op.name in SQUASHING and is_tensor(given) and is_tensor(output):
            self._squashed.append((op.name, given, output))

    def _note_maker(self, op: Op, made: int) -> None:
        name = op.name.rstrip("_") if not op.name.startswith("__") else op.name
        # `x.contiguous()` may return x itself: it made nothing. `x.sigmoid_()` returns x itself too, with new values.
        if made in op.inputs and name == op.name:
            return
        source = self._made.get(op.inputs[0]) if op.inputs else None
        self._last[made] = name
        if name not in CARRIERS:
            behind = source.name if source else None
            self._made[made] = Made(_meaning(op, name, source), op.location, _axis(op), behind)
        elif source is not None:
            self._made[made] = source

    def _note_broadcast(self, op: Op, output: Any) -> None:
        pair = [a for a in op.args if is_tensor(a)]
        if len(pair) != 2 or not is_tensor(output):
            return
        one, other = (self._sides.get(id(t), set()) for t in pair)
        facing = {"output"} in (one, other) and {"target"} in (one, other)
        if facing and output.numel() > max(pair[0].numel(), pair[1].numel()) and not self._wants_every_pair(*pair):
            self._blown = (output, op.location, pair)

    def _wants_every_pair(self, one: Any, other: Any) -> bool:
        """Both sides were given an axis for the other one, as in a Chamfer distance."""
        return all(is_tensor(t) and 1 in t.shape and self._last.get(id(t)) in AXIS_MAKERS for t in (one, other))

    def calls(self, name: str, loss: Any, outputs: Any, target: Any, ask: Ask | None = None) -> Iterator[LossCall]:
        """Every call of a known loss; the user's own loss as a whole when there was none, or when it broadcasts.

        `ask` is the user's own loss at another output, where it can be called alone: its values tell which loss it is.
        """
        value = scalar(loss)
        known = list(self.known_calls(loss))
        yield from known
        if known and self._blown is None:
            return
        made, place, pair = self._blown or (None, None, [])
        shape = None if made is None else tuple(made.shape)
        sides = (("output", outputs), ("target", target))
        if pair:
            sides = tuple((next(iter(self._sides[id(t)])), t) for t in pair)  # type: ignore[assignment]
        family, reduction = ("other", None) if pair else _recognised(loss, outputs, target, ask)
        squashed = next((s for s in self._squashed if not _has_graph(loss) or _has_graph(s[2])), None)
        options = {} if squashed is None else {"applies": squashed[0]}
        if squashed is not None and family == "other" and not pair:
            sides = (("output", squashed[1]), ("target", target))
        arguments = tuple(self._argument(role, family, t) for role, tree in sides for _, t in leaves(tree, is_tensor))
        loss_shape = tuple(loss.shape) if is_tensor(loss) else ()
        yield LossCall(
            name, family, value, arguments, loss_shape, shape, reduction, options, place, place, returned=mean_of(loss)
        )  # fmt: skip

    def known_calls(self, loss: Any) -> Iterator[LossCall]:
        for op, returned in self._calls:
            is_metric = _has_graph(loss) and is_tensor(returned) and not _has_graph(returned)
            if not is_metric:
                yield self._known(op, returned, scalar(loss))

    def _known(self, op: Op, returned: Any, value: float | None) -> LossCall:
        family = FAMILIES[op.name]
        bound = bind(op)
        arguments = tuple(self._argument(key, family, tensor) for key, tensor in bound.items() if is_tensor(tensor))
        pairs = family in BROADCASTING and self._wants_every_pair(bound.get("input"), bound.get("target"))
        return known_call(op.name, bound, arguments, returned, value, op.location, pairs)

    def _argument(self, key: str, family: str, tensor: torch.Tensor) -> Argument:
        made = self._made.get(id(tensor))
        return Argument(
            facts=array_facts(key, tensor),
            role=self._role(key, family, self._sides.get(id(tensor), set())),
            producer=made.name if made else None,
            axis_sums=axis_sums(tensor),
            producer_location=made.location if made else None,
            producer_axis=made.axis if made else None,
            behind=made.behind if made else None,
            exp_sums=exp_sums(tensor),
        )

    def _role(self, key: str, family: str, sides: set[str]) -> str:
        if key in ("weight", "pos_weight"):
            return "weight"
        if family in SYMMETRIC and len(sides) == 1:
            return next(iter(sides))
        # What the model itself made is no truth to learn: the labels of a GAN, a student's own soft targets.
        if key == "target" and sides == {"output"}:
            return "other"
        return ROLES.get(key, "other")


def _recognised(loss: Any, outputs: Any, target: Any, ask: Ask | None) -> tuple[str, str | None]:
    """Which loss a function of the user's own is, by its values; only where it takes one output and one target."""
    output = [t for _, t in leaves(outputs, is_tensor)]
    wanted = [t for _, t in leaves(target, is_tensor)]
    if (
        ask is None
        or not is_tensor(outputs)
        or len(wanted) != 1
        or not output[0].is_floating_point()
        or _has_no_values(output[0])
    ):
        return "other", None
    values = output[0].detach()
    # A function may drop the last axis of the output itself.
    shape = wanted[0].shape if values.shape == (*wanted[0].shape, 1) else values.shape

    def asked(point: np.ndarray) -> Any:
        with torch.no_grad():
            said = ask(torch.as_tensor(point).to(values).reshape(values.shape))
        return to_numpy(said) if is_tensor(said) else said

    return recognise(to_numpy(values).astype(np.float32).reshape(shape), to_numpy(wanted[0]), scalar(loss), asked)


def _has_no_values(tensor: torch.Tensor) -> bool:
    return tensor.is_meta or not 0 < tensor.numel() <= ASKED


def bind(op: Op) -> dict[str, Any]:
    return bind_arguments(op.name, op.args, op.kwargs)


def bind_arguments(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name; a call that does not fit the signature in torch.nn.functional keeps its first two."""
    names = _parameters(name)
    if len(args) > len(names) or not kwargs.keys() <= set(names):
        return {**dict(zip(("input", "target"), args, strict=False)), **kwargs}
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return {key: given[key] for key in names if key in given}


@cache
def _parameters(name: str) -> tuple[str, ...]:
    function = getattr(functional, name, None)
    return () if function is None else tuple(inspect.signature(function).parameters)


def known_call(
    name: str,
    bound: Mapping[str, Any],
    arguments: tuple[Argument, ...],
    returned: Any,
    value: float | None,
    location: Location | None,
    wants_every_pair: bool,
) -> LossCall:
    """A call of a loss that torch brings along; `bound` are its arguments by name. `returned` None: it raised."""
    family = FAMILIES.get(name, "other")
    options = {k: v for k, v in bound.items() if isinstance(v, int | float | bool | str)}
    options |= {f"has_{k}": True for k in ("weight", "pos_weight") if is_tensor(bound.get(k))}
    return LossCall(
        name=name,
        family=family,
        value=value,
        arguments=arguments,
        output_shape=tuple(returned.shape) if is_tensor(returned) else (),
        broadcast=None if wants_every_pair or family not in BROADCASTING else _broadcast(bound.get("input"), bound.get("target")),
        reduction=bound.get("reduction", "mean"),
        options=options,
        location=location,
        broadcast_location=location,
        returned=mean_of(returned),
        failed=returned is None,
    )


def _broadcast(one: Any, other: Any) -> tuple[int, ...] | None:
    if not (is_tensor(one) and is_tensor(other)) or one.shape == other.shape:
        return None
    try:
        shape = torch.broadcast_shapes(one.shape, other.shape)
    except RuntimeError:
        return None
    return tuple(shape) if int(np.prod(shape)) > max(one.numel(), other.numel()) else None


def scalar(loss: Any) -> float | None:
    if is_tensor(loss):
        if loss.numel() != 1 or loss.is_meta:
            return None
        loss = loss.detach().item()
    return float(loss) if isinstance(loss, int | float) and np.isfinite(loss) else None


def _has_graph(loss: Any) -> bool:
    """A loss that is computed without one, beside a loss that has one, is a metric."""
    return is_tensor(loss) and loss.requires_grad


def mean_of(returned: Any) -> float | None:
    if not is_tensor(returned) or returned.is_meta or not returned.numel() or returned.is_complex():
        return scalar(returned)
    return scalar(returned.detach().double().mean())


def _meaning(op: Op, name: str, source: Made | None) -> str:
    """`1 / (1 + exp(-x))` is a sigmoid written by hand."""
    if name in INVERSES and len(op.inputs) == 1 and source and source.behind == "exp" and "add" in source.name:
        return "sigmoid"
    return SAME_MEANING.get(name, name)


def _axis(op: Op) -> int | None:
    axis = op.kwargs.get("dim", op.args[1] if len(op.args) > 1 else None)
    source = op.args[0] if op.args and is_tensor(op.args[0]) else None
    if source is None or not source.dim() or not isinstance(axis, int) or isinstance(axis, bool):
        return None
    return axis % source.dim()
