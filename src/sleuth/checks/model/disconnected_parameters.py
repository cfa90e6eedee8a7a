"""Parameters that the loss does not depend on."""

import re
from collections.abc import Iterator
from dataclasses import replace

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Parameter, Role
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Connection, Cut

# A pooler or classifier that came with a pretrained model and stays unused is a small part; a forgotten branch is not.
SMALL_SHARE = 0.05
NUMPY = "the values leave for NumPy and lose their graph"
WORDS = {
    "detach": "detach() takes the values out of the graph",
    "detach_": "detach_() takes the values out of the graph",
    "data": ".data takes the values out of the graph",
    "no_grad": "this runs under torch.no_grad(), which records no graph",
    "inference_mode": "this runs under torch.inference_mode(), which records no graph",
    "wrapped": "the values come here in a new tensor (nn.Parameter(…), Variable(…)), which nothing made",
    "numpy": NUMPY,
    "__array__": NUMPY,
    "tolist": "the values leave for a Python list and lose their graph",
    "item": "item() makes a plain number without a graph",
    "__float__": "float(…) makes a plain number without a graph",
    "__int__": "int(…) makes a plain number without a graph",
    "tensor": "torch.tensor(...) copies the values without their graph",
    "new_tensor": "new_tensor(...) copies the values without their graph",
    "sample": "sample() draws without a graph",
}
BLOCK = "Take this line out of the torch.{}() block or decorator."
WRAPPED = "Remove torch.tensor(...): use the tensor as it is, or torch.stack([...]) for several."
STAY = "Stay in torch: replace the NumPy computation by the torch functions of the same name."
NUMBER = "Remove {} where the value goes on into the loss; keep the tensor."
STEPS = "Keep the value itself in training, or pass its gradient straight through: h = h + ({}(h) - h).detach()."
SCORES = "Feed the scores themselves, or softmax of them, instead of {}."
CURES = {
    "detach": "Remove the .detach(): write h instead of h.detach().",
    "detach_": "Remove the .detach_().",
    "data": "Remove the .data: write h instead of h.data.",
    "no_grad": BLOCK.format("no_grad"),
    "inference_mode": BLOCK.format("inference_mode"),
    "wrapped": "Use the tensor as it is, without nn.Parameter(…) or Variable(…) around it.",
    "tensor": WRAPPED,
    "new_tensor": WRAPPED,
    "numpy": STAY,
    "__array__": STAY,
    "tolist": "Stay in torch: replace the Python list by tensor operations.",
    "item": NUMBER.format(".item()"),
    "__float__": NUMBER.format("float(…)"),
    "__int__": NUMBER.format("int(…)"),
    "sample": "Draw with rsample() instead of sample(), or train through log_prob(sample).",
    **{name: SCORES.format(name) for name in ("argmax", "argmin", "argsort", "topk", "multinomial", "sort", "max", "min")},
    **{name: STEPS.format(name) for name in ("round", "floor", "ceil", "trunc", "sign", "heaviside", "bernoulli")},
    **{
        name: "Use sigmoid(h) in place of the comparison, which has no gradient." for name in ("gt", "ge", "lt", "le", "eq", "ne")
    },
    **{name: "Keep it floating: whole numbers have no gradient." for name in ("long", "int", "short", "byte", "bool")},
}
# Under these a second copy of a network is kept that only follows the first: a momentum teacher, a target network.
FOLLOWING = ("no_grad", "inference_mode", "detach", "data")
# Looks at which a part never moved and never was like its twin: then it follows nobody.
LEAST_LOOKS = 8


@check(
    code="M219",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Connection, Architecture),
    explains=(
        "backward-fails",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "learns-without-input",
        "loss-not-decreasing",
        "zero-gradients",
        "weights-do-not-change",
        "update-too-small",
        "vanishing-gradients",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "gradient-wrong",
        "underfitting",
        "capacity-too-small",
    ),
    title="The loss does not reach some parameters",
    why="""A parameter gets its gradient along the chain of operations between it and the loss. Where the chain is cut, or the
    result is never used, the parameter stays as it started, without any message.""",
    fix="Let what the layer computes flow into the loss without detach, .data, no_grad, NumPy or argmax on the way.",
    decided_by="which parameters the loss reaches, walking its graph back",
    symptoms=(
        "gradient is None",
        "grad is None for some layers",
        "weights do not change in some layers",
        "detach cuts the graph",
        "Expected to have finished reduction in the prior iteration",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "gradients are zero",
    ),
)
def disconnected_parameters(seen: Seen, *, small_share: float = SMALL_SHARE) -> Iterator[Evidence | NotExamined]:
    found = seen.one(Connection)
    known = {p.path: p for p in seen.one(Architecture).parameters}
    # What this optimiser does not hold is trained elsewhere or not at all: parameters-not-optimised decides.
    missing = [known[path] for path in found.without_gradient if path in known and known[path].optimised is not False]
    if not missing:
        return
    paths = {p.path for p in missing}
    cut = next((c for c in found.cuts if paths & set(c.parameters)), None)
    leader = _followed(missing, known, found) if cut is not None and cut.operation in FOLLOWING else None
    if leader is not None and not _stands_alone(seen, missing, leader):
        yield NotExamined(f"{missing[0].path} and its neighbours may be a copy that follows {leader}, as a momentum teacher does")
        return
    if cut is not None:
        told = _cut_off(cut, [p for p in missing if p.path in cut.parameters], found)
        # A network that stays random on purpose, for another like it to predict, looks the same.
        meant = leader is not None
        yield replace(told, severity=Severity.WARNING, confidence=Confidence.LIKELY) if meant else told
        return
    if _routed(missing, known, found):
        yield NotExamined(f"no batch came by {missing[0].layer}, though others of its kind were used: it may be an expert")
        return
    share = sum(p.size for p in missing) / max(sum(p.size for p in known.values() if p.trainable and p.tied_to is None), 1)
    yield _unused(missing, share, found, small_share)


def _cut_off(cut: Cut, behind: list[Parameter], found: Connection) -> Evidence:
    # A distribution draws under no_grad of its own.
    drawn = cut.operation == "no_grad" and cut.location is not None and ".sample(" in cut.location.text
    operation = "sample" if drawn else cut.operation
    how = WORDS.get(operation, f"{operation} has no gradient") + (f" in {cut.layer}" if cut.layer else "")
    if len(behind) == found.parameters:
        who = f"none of the {found.parameters} parameters gets a gradient"
    else:
        who = f"{len(behind)} of {found.parameters} parameters get no gradient"
    return Evidence(
        where=behind[0].layer or behind[0].path,
        location=cut.location,
        summary=f"{who}, {_names(behind)}: {how}",
        numbers={"without_gradient": len(behind), "parameters": found.parameters, "operation": operation},
        confidence=Confidence.CERTAIN if cut.certain else Confidence.LIKELY,
        fix=CURES.get(operation),
        strength=float(len(behind)),
    )


def _unused(missing: list[Parameter], share: float, found: Connection, small_share: float) -> Evidence:
    never = all(p.layer in found.unused_layers for p in missing)
    how = "nothing in the forward pass uses them" if never else "what they compute is thrown away before the loss"
    small = share < small_share
    return Evidence(
        where=missing[0].layer or missing[0].path,
        summary=f"{len(missing)} of {found.parameters} parameters ({share:.0%} of the numbers) get no gradient, "
        f"{_names(missing)}: {how}",
        numbers={"without_gradient": len(missing), "parameters": found.parameters, "share": share},
        severity=Severity.HINT if small else None,
        confidence=Confidence.LIKELY,
        fix="Use what the layer returns in forward (h = self.layer(h)), or remove the layer.",
        strength=share / small_share,
    )


def _followed(missing: list[Parameter], known: dict[str, Parameter], found: Connection) -> str | None:
    """The part of the model that has the same parameters as the missing ones, and gets gradients for all of them."""
    shapes = {_tail(p.path, missing): p.shape for p in missing}
    reached = {path: p.shape for path, p in known.items() if p.trainable and path not in found.without_gradient}
    prefixes = {path.removesuffix(tail) for path in reached for tail in list(shapes)[:1] if path.endswith(tail)}
    twins = (p for p in sorted(prefixes) if p and all(reached.get(p + tail) == shape for tail, shape in shapes.items()))
    return next((p.rstrip(".") for p in twins if len(missing) > 1), None)


def _stands_alone(seen: Seen, missing: list[Parameter], leader: str) -> bool:
    """It was seen to stay as it was, all through a training, and did not begin as a copy of its twin either."""
    weights = {t.path: t for t in seen.latest(Role.WEIGHT) if len(t.steps) >= LEAST_LOOKS}
    pairs = [(weights.get(p.path), weights.get(f"{leader}.{_tail(p.path, missing)}")) for p in missing if len(p.shape) > 1]
    if not pairs or any(one is None or other is None for one, other in pairs):
        return False
    return all(
        len(set(one.rms_over_steps)) == 1 and one.rms_over_steps[0] != other.rms_over_steps[0] != other.rms_over_steps[-1]
        for one, other in pairs
        if one is not None and other is not None
    )


def _tail(path: str, missing: list[Parameter]) -> str:
    """Below what all of them have in common."""
    paths = [p.path.split(".") for p in missing]
    depth = next((i for i, names in enumerate(zip(*paths, strict=False)) if len(set(names)) > 1), len(paths[0]) - 1)
    return ".".join(path.split(".")[depth:])


def _routed(missing: list[Parameter], known: dict[str, Parameter], found: Connection) -> bool:
    """Experts and dropped layers: numbered twins of layers that are in use."""
    used = {_numberless(path) for path, p in known.items() if p.trainable and path not in found.without_gradient}
    return all(p.layer in found.unused_layers and _numberless(p.path) in used for p in missing)


def _numberless(path: str) -> str:
    return re.sub(r"\d+", "#", path)


def _names(parameters: list[Parameter]) -> str:
    names = ", ".join(p.path for p in parameters[:2])
    return f"{names} and {len(parameters) - 2} more" if len(parameters) > 2 else names
