"""Half-precision numbers under- or overflow, or are too coarse for the step."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.checks.evidence.loop import place_of
from sleuth.checks.evidence.progress import Progress, progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, CallKind, Frame, Origin, Parameter, Precision, Role, Settings, Step
from sleuth.core.reading.course import courses_of, matrices_of, together
from sleuth.core.reading.curve import guessing
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import rms_of

# Half the distance between neighbouring numbers, relative to them: a smaller change is rounded away.
RESOLUTION = {"bfloat16": 2.0**-9, "float16": 2.0**-12}
# Of the values that have a gradient: these stay the same. Up to three quarters do so where bfloat16 weights still learn.
ROUNDED_AWAY = 0.8
# These round to the nearest number; others may round by chance, and then small changes add up all the same.
ROUNDING = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "RMSprop", "Adadelta", "Rprop")
# A step so much larger than the resolution is not lost to rounding.
MARGIN = 4.0
# Of the values other than zero: they lie in the last eight binary places that float16 has (2^-24 to 2^-16), where it keeps
# one to eight bits; about as many were smaller and became zero.
FAINT = 0.5
FAINT_BIN = 13  # of a histogram of exponents, see core.statistics; all bins below hold what float16 cannot
# A gradient whose root mean square is above that is carried by its large values, however many small ones it has.
FAINT_RMS = 2.0**-16
ALL_ZERO = 2.0
# Of what guessing costs, or of the loss at the start: who has so much left to learn should have gradients that are not faint.
# Below, gradients fade because the training is done.
MUCH_LEFT = 0.1
LEAST_LOOKS = 6
LEAST_DEEP_LOOKS = 2
LARGEST = 65504
# Of finite numbers they make infinite ones only where these are too large: not like a division by zero or its logarithm.
OVERFLOWING = ("square", "mul", "matmul", "mm", "addmm", "bmm", "linear", "conv1d", "conv2d", "conv3d", "add", "sub", "sum")
# Masks of −inf are meant; these layers put out what they compute.
COMPUTING = ("linear", "conv", "attention", "recurrent", "norm", "batchnorm", "activation")


@check(
    code="T431",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Architecture, (Precision, Role.UPDATE)),
    explains=(
        "output-not-finite",
        "loss-not-finite",
        "gradient-not-finite",
        "zero-gradients",
        "weights-do-not-change",
        "update-too-small",
        "vanishing-gradients",
        "loss-not-decreasing",
        "cannot-overfit-one-batch",
        "learning-rate-too-low",
        "underfitting",
        "predicts-one-class",
    ),
    title="Half precision loses the numbers",
    why="""bfloat16 has eight significant bits: a weight of 1 cannot change by less than 0.004. float16 ends at 65,504 and at
    0.00000006: larger activations become Inf, smaller gradients zero. Training then stops without any message.""",
    fix="""Keep the weights in float32 and compute in half precision inside torch.autocast; with float16 scale the loss as well
    (torch.amp.GradScaler).""",
    decided_by="weights that a step leaves as they are, and exponents of gradients and activations against their dtype",
    symptoms=(
        "loss does not decrease in bfloat16",
        "fp16 gives nan",
        "gradients underflow in half precision",
        "model.half() does not train",
        "works in float32 but not in float16",
        "weights do not change in bf16",
    ),
)
def precision_lost(
    seen: Seen, *, rounded_away: float = ROUNDED_AWAY, faint: float = FAINT, least_looks: int = LEAST_LOOKS
) -> Iterator[Evidence | NotExamined]:
    computed = {path: dtype for p in seen.all(Precision) for path, dtype in p.activations.items()}
    matrices = matrices_of(seen.one(Architecture))
    if not any(p.dtype in RESOLUTION for p in matrices.values()) and "float16" not in computed.values():
        return  # nothing is narrow enough to lose anything
    if (broken := _overflow(seen, computed) or _born_too_large(seen) or _broken_step(seen, matrices)) is not None:
        yield _placed(broken, seen)
        return
    looks = [f for f in seen.frames(Role.GRADIENT) if f.exponents is not None]
    lost = _rounded(seen, matrices, rounded_away, least_looks) or _underflow(looks, matrices, computed, faint)
    if lost is None:
        if seen.count(Role.UPDATE) < least_looks:
            yield NotExamined(f"fewer than {least_looks} steps were looked at in full")
        return
    progress = progress_of(seen.all(Step))
    if progress is None:
        yield NotExamined("small changes are lost, but the losses cannot tell whether that does harm")
    elif not progress.works:
        yield _placed(lost, seen)
    elif (slowed := _underflow(_before_done(seen, looks, progress), matrices, computed, faint)) is not None:
        summary = f"{slowed.summary}; the loss falls all the same, by what is left of the gradients"
        yield _placed(replace(slowed, summary=summary, severity=Severity.HINT), seen)


def _placed(evidence: Evidence, seen: Seen) -> Evidence:
    """Where no operation is to blame, the line that made the weights narrow is."""
    return evidence if evidence.location is not None else replace(evidence, location=place_of(seen, CallKind.NARROWED))


def _before_done(seen: Seen, looks: list[Frame], progress: Progress) -> list[Frame]:
    """Those at which there was much left to learn."""
    known = {s.step: s.loss for s in seen.all(Step) if s.loss is not None}
    losses = np.interp([f.step for f in looks], list(known), list(known.values()))
    high = guessing(seen) or progress.start
    return [frame for frame, loss in zip(looks, losses, strict=True) if loss >= MUCH_LEFT * high > 0]


def _overflow(seen: Seen, computed: dict[str, str]) -> Evidence | None:
    families = {layer.path: layer.family for layer in seen.one(Architecture).layers}
    broken = {f.step for f in seen.frames(Role.WEIGHT) if f.table[:, 7:9].any()}
    frames = seen.frames(Role.ACTIVATION)
    for frame in frames:
        if frame.step in broken:
            return None  # NaN in the weights: whatever made them so came before
        bad = next(((path, row) for path, row in zip(frame.paths, frame.table, strict=True) if row[7] or row[8]), None)
        if bad is None:
            continue
        path, row = bad
        if computed.get(path) != "float16" or families.get(path) not in COMPUTING or not row[8]:
            return None
        return Evidence(
            where=path,
            summary=f"{int(row[8])} of {int(row[0])} outputs of {path} are Inf at step {frame.step}: computed in float16, which "
            f"ends at {LARGEST:,}, while everything before is finite",
            numbers={"infs": int(row[8]), "count": int(row[0]), "step": frame.step},
            severity=Severity.ERROR,
            confidence=Confidence.CERTAIN,
            fix="Use bfloat16 in place of float16, or keep this layer in float32 "
            "(in torch: torch.autocast(…, enabled=False) around it).",
            first_step=None if frame is frames[0] else frame.step,
            last_step=frame.step,
        )
    return None


def _born_too_large(seen: Seen) -> Evidence | None:
    """Wherever the first number that is not finite was made, in a layer or between them."""
    origin = min((o for o in seen.all(Origin)), key=lambda o: o.step, default=None)
    if origin is None or origin.direction != "forward" or origin.dtype != "float16" or origin.nans or not origin.infs:
        return None
    if origin.operation not in OVERFLOWING or not origin.inputs:
        return None
    ranges = " and ".join(f"{low:.4g} … {high:.4g}" for low, high in origin.inputs[:2])
    return Evidence(
        where=origin.layer,
        location=origin.location,
        summary=f"{origin.operation} makes Inf of {ranges} at step {origin.step}: it is computed in float16, which ends at "
        f"{LARGEST:,}",
        numbers={"infs": origin.infs, "step": origin.step},
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN if origin.certain else Confidence.LIKELY,
        fix="Use bfloat16 in place of float16, or compute this in float32: x.float() before it.",
        first_step=origin.step,
        last_step=origin.step,
    )


def _broken_step(seen: Seen, matrices: dict[str, Parameter]) -> Evidence | None:
    """A finite gradient and finite weights, and after the step they are not: the optimiser's own numbers did not fit."""
    roles = [courses_of(seen.frames(role)) for role in (Role.GRADIENT, Role.WEIGHT, Role.UPDATE)]
    for path in (p.path for p in matrices.values() if p.dtype == "float16"):
        if not all(path in courses for courses in roles):
            continue
        gradient, weight, update = together(*(courses[path] for courses in roles))
        bad = gradient.finite & weight.finite & ~update.finite
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            return Evidence(
                where=path,
                summary=f"the step at {int(update.steps[at])} turns {int(update.table[at, 7:9].sum())} of "
                f"{int(update.table[at, 0])} values looked at of {path} into NaN or Inf, though its gradient is finite: the "
                "optimiser computes in float16, where squares of small gradients and eps = 1e-8 are zero",
                numbers={"step": int(update.steps[at]), "gradient": float(gradient.rms[at])},
                severity=Severity.ERROR,
                confidence=Confidence.CERTAIN,
                first_step=None if at == 0 else int(update.steps[at]),
            )
    return None


def _rounded(seen: Seen, matrices: dict[str, Parameter], rounded_away: float, least_looks: int) -> Evidence | None:
    roles = [courses_of(seen.frames(role)) for role in (Role.GRADIENT, Role.UPDATE, Role.WEIGHT)]
    rates = {s.step: s.lr for s in seen.all(Step)}
    shares: dict[str, float] = {}
    looks = 0
    half = [p for p in matrices.values() if p.dtype in RESOLUTION and all(p.path in courses for courses in roles)]
    for parameter in half:
        gradient, update, weight = together(*(courses[parameter.path] for courses in roles))
        chosen = np.array([rates.get(int(step)) != 0 for step in gradient.steps], dtype=bool) & gradient.finite
        if chosen.sum() < least_looks:
            continue
        looks = max(looks, int(chosen.sum()))
        with_gradient = np.maximum(1 - gradient.zero_share[chosen], 1e-9)
        lost = np.median((update.zero_share[chosen] - gradient.zero_share[chosen]) / with_gradient)
        size = np.median(weight.rms[chosen])
        if lost > rounded_away and _could_round(seen, float(np.median(gradient.rms[chosen])), float(size), parameter.dtype):
            shares[parameter.path] = float(lost)
    if not shares or 2 * len(shares) < len(half):
        return None
    path = max(shares, key=lambda p: shares[p])
    dtype = matrices[path].dtype
    return Evidence(
        where=path,
        summary=f"a step leaves {shares[path]:.0%} of the values of {path} as they are, although they have a gradient "
        f"(median over {looks} steps): {dtype} cannot add so small a change; so in {len(shares)} of {len(half)} weight matrices",
        numbers={"share": shares[path], "layers": len(shares), "of": len(half), "dtype": dtype},
        strength=shares[path] / rounded_away,
    )


def _could_round(seen: Seen, gradient: float, weight: float, dtype: str) -> bool:
    """Is the step that was asked for that small? Optimisers other than SGD make it about as large as their rate."""
    settings = seen.maybe(Settings)
    lr = max((s.lr for s in seen.all(Step) if s.lr is not None), default=None)
    if settings is None or settings.optimiser not in ROUNDING or lr is None:
        return False
    asked = lr * gradient if settings.optimiser == "SGD" else lr
    return asked < MARGIN * RESOLUTION[dtype] * weight


def _underflow(deep: list[Frame], matrices: dict[str, Parameter], computed: dict[str, str], faint: float) -> Evidence | None:
    narrow = [p.path for p in matrices.values() if p.dtype == "float16" or computed.get(p.layer) == "float16"]
    shares = {path: found for path in narrow if len(found := _faint_shares(deep, path)) >= LEAST_DEEP_LOOKS}
    low = {path: float(np.median(found)) for path, found in shares.items() if np.median(found) >= faint}
    # Layers whose gradient is zero throughout stand with the faint ones; alone they may have other reasons.
    told = [path for path in low if any(share < ALL_ZERO for share in shares[path])]
    if not told or 2 * len(low) < len(shares):
        return None
    path = min(told, key=lambda p: low[p])
    return Evidence(
        where=path,
        summary=f"{min(low[path], 1.0):.0%} of the gradient of {path} is below 0.00002, where float16 has hardly any digits, and "
        f"smaller ones are zero; so in {len(low)} of {len(shares)} weight matrices that are computed in float16",
        numbers={"share": min(low[path], 1.0), "layers": len(low), "of": len(shares), "dtype": "float16"},
        fix="Scale the loss: scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); scaler.step(optimizer); "
        "scaler.update(), or use bfloat16.",
        strength=low[path] / faint,
    )


def _faint_shares(frames: list[Frame], path: str) -> list[float]:
    """Look by look; ALL_ZERO where all is. Empty where numbers appear that float16 does not have: a scaler is at work."""
    shares = []
    for frame in frames:
        if path not in frame.paths or frame.exponents is None:
            continue
        row = frame.paths.index(path)
        bins = frame.exponents[row]
        if bins[:FAINT_BIN].any():
            return []
        total = int(bins.sum())
        carried = rms_of(frame.table[[row]])[0] > FAINT_RMS
        shares.append(0.0 if carried else float(bins[FAINT_BIN]) / total if total else ALL_ZERO)
    return shares
