"""Softmax runs over the batch, or another wrong axis, instead of the classes."""

from collections.abc import Iterator

from sleuth.checks.evidence.softmaxes import Softmax, downstream, softmaxes
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Argument, LossCall
from sleuth.core.reading.lines import beside, producer_line
from sleuth.core.reading.wiring import by_place, class_axis, classifies, rounding, sums_to_one, within_unit
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Flow

SOFTMAXES = ("softmax", "log_softmax")
# Losses without a class axis of their own: only a softmax over the batch is surely wrong for them.
ELEMENTWISE = ("bce", "bce-logits", "mse", "l1", "huber", "kl")

# A model that repeats a block repeats its mistakes.
MOST_INSIDE = 1


@check(
    code="M207",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((LossCall, Flow),),
    explains=(
        "samples-mix", "double-softmax", "cannot-overfit-one-batch", "loss-not-decreasing", "loss-diverges", "loss-oscillates",
        "initial-loss-off", "vanishing-gradients", "exploding-gradients", "learning-rate-too-high", "learning-rate-too-low",
        "step-changes-nothing", "learns-without-input", "collapsed-output", "wrong-last-activation", "train-eval-disagree",
        "input-ignored", "future-leaks", "gradient-wrong", "loss-not-finite",
        "capacity-too-small",
    ),
    title="Softmax runs over the wrong axis",
    why="""Probabilities must sum to 1 over the classes of each sample. Summed over the batch (dim=0 of an output of shape
    (N, classes)) the samples compete with each other, and each answer depends on what else stands in the batch. The same goes
    for weights of an attention, which must sum to 1 over the positions of each sample.""",
    fix="""Run softmax over the class axis: softmax(x, dim=1), or dim=-1 while the classes still stand last. Better: drop it and
    give raw scores to cross-entropy.""",
    decided_by="the sums of the output along each axis",
    symptoms=(
        "softmax over the wrong dimension",
        "Implicit dimension choice for softmax has been deprecated",
        "probabilities do not sum to 1",
        "softmax dim=0",
    ),
)  # fmt: skip
def softmax_wrong_axis(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for group in by_place(seen.all(LossCall)):
        if all(call.over_batch for call in group):
            yield _in_the_loss(group[0])
            return
        axes = [_wrong_axis(call) for call in group]
        output = group[0].argument("output")
        if output is None or any(axis is None for axis in axes):
            continue
        shape, axis, right = output.facts.shape, axes[0], _right_axis(group[0], output)
        name, place = "the batch" if axis == 0 else f"axis {axis}", producer_line(group)
        yield Evidence(
            location=place or group[0].location,
            summary=f"the output {shape} that goes into {group[0].name}{beside(place, group[0].location)} is normalised over "
            f"{name}, not over axis {right}",
            numbers={"axis": axis, "class_axis": right, "shape": shape},
            confidence=None if output.producer in SOFTMAXES and group[0].family != "other" else Confidence.LIKELY,
        )
        return
    flow = seen.maybe(Flow)
    if flow is not None and not _time_may_come_first(seen):
        found = [softmax for softmax in softmaxes(flow) if _over_the_samples(softmax)]
        yield from map(_inside, found[:MOST_INSIDE])


def _in_the_loss(call: LossCall) -> Evidence:
    return Evidence(
        location=call.over_batch_location or call.location,
        summary=f"{call.name} takes its softmax over the samples of the batch (axis 0), not over the classes of each: at random "
        "scores it says exactly what that would",
        fix="Sum over the classes inside the loss: exp(z).sum(axis=1, keepdims=True).",
    )


def _over_the_samples(softmax: Softmax) -> bool:
    """And each sample keeps its own rows all the way to the output. Where the samples are summed over next, as in an attention
    over the nodes of a graph or the members of a bag, they are no samples."""
    operation = softmax.operation
    if operation.samples != (softmax.axis,) or not any(n > 1 for a, n in enumerate(operation.shape) if a != softmax.axis):
        return False
    after = [softmax.flow.operations[i] for i in downstream(softmax)]
    return bool(after) and all(o.samples for o in after) and any(o.leaves for o in after)


def _time_may_come_first(seen: Seen) -> bool:
    found = seen.maybe(Architecture)
    return found is not None and any(layer.settings.get("batch_first") is False for layer in found.layers)


def _inside(softmax: Softmax) -> Evidence:
    operation = softmax.operation
    others = [axis for axis, size in enumerate(operation.shape) if axis != softmax.axis and size > 1]
    return Evidence(
        where=operation.layer or None,
        location=operation.location,
        summary=f"inside the model {operation.name} runs over the samples of the batch: axis {softmax.axis} of the shape "
        f"{operation.shape}, for {operation.shape[softmax.axis]} samples",
        fix=f"Run it over the positions or features of each sample: softmax(x, dim={others[0]}).",
        numbers={"axis": softmax.axis, "shape": operation.shape},
        confidence=Confidence.LIKELY,
    )


def _wrong_axis(call: LossCall) -> int | None:
    output = call.argument("output")
    if output is None or not output.facts.shape:
        return None
    shape, right = output.facts.shape, class_axis(output)
    if classifies(call) and len(shape) > 1 and shape[1] > 1:
        return next((axis for axis in range(len(shape)) if axis != right and _normalised(output, axis, right)), None)
    if call.family in ELEMENTWISE or _classifies_by_hand(call, output):
        return 0 if _over_batch(call, output) else None
    return _beside_the_classes(call, output)


def _normalised(output: Argument, axis: int, right: int) -> bool:
    """Over `axis` and not over the right one."""
    log = output.producer == "log_softmax"
    if sums_to_one(output, right, log):
        return False
    if output.producer not in SOFTMAXES:
        return within_unit(output) and output.facts.shape[axis] > 1 and sums_to_one(output, axis)
    # Axes that a reshape has joined (batch and positions) sum to the same whole number in every column.
    sums = output.exp_sums if log else output.axis_sums
    if axis >= len(sums):
        return False
    low, high = sums[axis]
    near = rounding(output) * max(high, 1.0)
    return low > 0.5 and high - low <= near and abs(high - round(high)) <= near


def _over_batch(call: LossCall, output: Argument) -> bool:
    target, shape = call.argument("target"), output.facts.shape
    # A softmax in line has no name; shares of one whole that are counted over the samples can hardly come from elsewhere.
    unnamed = output.producer is None and call.family == "other" and within_unit(output)
    if not (output.producer in SOFTMAXES or unnamed) or shape[0] < 2:
        return False
    # A target that itself sums to one over the samples: they are a list to be ranked.
    if target is not None and sums_to_one(target, 0):
        return False
    log = output.producer == "log_softmax"
    others = [sums_to_one(output, axis, log) for axis in range(1, len(shape))]
    return sums_to_one(output, 0, log) and not any(others)


def _right_axis(call: LossCall, output: Argument) -> int:
    return next(iter(_class_axes(call, output)), class_axis(output)) if call.family == "other" else class_axis(output)


def _class_axes(call: LossCall, output: Argument) -> list[int]:
    """Where the classes may stand in a loss of the user's own: the axis that the class indices lack."""
    target, shape = call.argument("target"), output.facts.shape
    if target is None or target.facts.is_float or len([a for a in call.arguments if a.role == "output"]) > 1:
        return []
    return [axis for axis, size in enumerate(shape) if size > 1 and target.facts.shape == shape[:axis] + shape[axis + 1 :]]


def _beside_the_classes(call: LossCall, output: Argument) -> int | None:
    """For sequences and images in a loss of the user's own; equal lengths leave it open where the classes are."""
    right = _class_axes(call, output)
    if call.family != "other" or len(output.facts.shape) < 3 or not right or output.producer not in SOFTMAXES:
        return None
    log = output.producer == "log_softmax"
    if any(sums_to_one(output, axis, log) for axis in right):
        return None
    sums = range(len(output.facts.shape))
    return next((axis for axis in sums if output.facts.shape[axis] > 1 and sums_to_one(output, axis, log)), None)


def _classifies_by_hand(call: LossCall, output: Argument) -> bool:
    """A loss of the user's own, with one class index for each row of the output, or a row of shares that sum to one."""
    target, shape = call.argument("target"), output.facts.shape
    if call.family != "other" or target is None or len(shape) != 2 or shape[1] < 2:
        return False
    if target.facts.shape == shape and within_unit(target) and sums_to_one(target, 1):
        return True
    return target.facts.shape == shape[:1] and not target.facts.is_float
