"""What to write instead of an operation that made NaN or Inf, for the very values that broke it."""

from collections.abc import Callable

from sleuth.core.observation import Origin

Said = Callable[[Origin], str | None]
# The largest number a type holds, and the largest whose exponential it holds.
LARGEST = {"float16": "65,504", "bfloat16": "3.4e38", "float32": "3.4e38"}
EXPONENTS = {"float16": (10, 11), "float64": (700, 709)}
SQUARES = {"pow", "square", "mul"}
NORMS = {"norm", "sqrt"}


def stable_form(origin: Origin) -> str | None:
    """A sentence that begins with a verb; None where nothing better is known than the check's own text."""
    if origin.advice is not None:
        return origin.advice
    if origin.taken_by is not None:
        return _underflow(origin)
    if origin.unused:
        return (
            f"Make the input of {origin.operation} harmless before choosing: safe = torch.where(ok, x, torch.ones_like(x)), then "
            f"torch.where(ok, {origin.operation} of safe, other). A where hides its bad branch, but the gradient of that is NaN."
        )
    overflow = origin.infs > 0 and not origin.nans and origin.direction == "forward"
    if overflow and origin.dtype == "float16" and origin.operation not in ("log", "div"):
        return _overflow(origin)
    said = (BACKWARD if origin.direction == "backward" else FORWARD).get(origin.operation)
    found = said(origin) if said is not None else None
    return found or (_overflow(origin) if overflow else None)


def _underflow(origin: Origin) -> str:
    dim = "dim" if origin.operation == "cumprod" else ""
    added = f"torch.cumsum(torch.log(x), {dim})" if dim else "torch.log(x).sum()"
    product = f"torch.cumprod(x, {dim})" if dim else "x.prod()"
    return f"Add logarithms instead of multiplying: {added} is the logarithm of {product}, and does not end at zero."


def _overflow(origin: Origin) -> str:
    limit = f" (it holds up to {LARGEST[origin.dtype]})" if origin.dtype in LARGEST else ""
    if origin.dtype == "float16":
        return (
            f"Compute {origin.operation} in another type than float16{limit}: write x.float() before it, use bfloat16 "
            "(torch.autocast(device, torch.bfloat16)), or scale the values down."
        )
    return f"Bound what goes into {origin.operation}: clamp or normalise it, or work with its logarithm{limit}."


def _log(origin: Origin) -> str:
    first = origin.makers[0] if origin.makers else ""
    if first == "softmax":
        return "Write torch.log_softmax(scores, dim) instead of log(softmax(scores)), or give the raw scores to F.cross_entropy."
    if "sigmoid" in origin.makers[:2] and first in ("sigmoid", "sub"):
        sign = "-" if first == "sub" else ""
        return f"Write F.logsigmoid({sign}scores), or give the raw scores to F.binary_cross_entropy_with_logits."
    if "exp" in origin.makers[:2] and first in ("sum", "exp"):
        return "Write torch.logsumexp(x, dim) instead of log(exp(x).sum(dim))."
    if origin.inputs and origin.inputs[0][0] < 0:
        return (
            "Give the logarithm positive values only, here it is given a negative one: F.softplus(x) + 1e-6 makes any number "
            "positive; data with a sign needs another transform, such as torch.sign(x) * torch.log1p(x.abs())."
        )
    return "Write torch.log(x.clamp(min=1e-6)) or torch.log(x + 1e-6): the logarithm of 0 is -inf."


def _div(origin: Origin) -> str:
    first = origin.makers[0] if origin.makers else ""
    if first in NORMS:
        return (
            "Write F.normalize(x, dim=-1, eps=1e-6), or x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6): a vector of zeros has "
            "no direction."
        )
    if first in ("std", "var"):
        return "Write (x - mean) / (std + 1e-6): the values do not differ, so their spread is 0."
    if first in ("exp", "sum") and "exp" in origin.makers:
        return "Write torch.softmax(x, dim) instead of exp(x) / exp(x).sum(dim): it subtracts the largest value first."
    if first == "sum":
        return "Write a / b.sum().clamp(min=1e-6), or leave out what has nothing to divide by: the sum is 0."
    return "Keep the divisor away from 0: a / (b + 1e-6) where b is never negative, or a / b.clamp(min=1e-6)."


def _exp(origin: Origin) -> str:
    high = max((high for _, high in origin.inputs), default=0.0)
    bound, most = EXPONENTS.get(origin.dtype, (80, 88))
    return (
        f"Write torch.exp(x.clamp(max={bound})), or subtract the largest value first, as softmax and logsumexp do: x reaches "
        f"{high:.3g}, and exp overflows beyond {most}."
    )


def _pow(origin: Origin) -> str | None:
    low = origin.inputs[0][0] if origin.inputs else 0.0
    if origin.nans or low < 0:
        return (
            "Raise only what is not negative: x.clamp(min=1e-6) ** p, or torch.sign(x) * x.abs() ** p if the sign matters. A "
            "negative number has no real root."
        )
    if any(c < 0 for c in origin.constants):
        return "Write x.clamp(min=1e-6) ** p: a negative power of 0 is infinite."
    return None


def _mul(origin: Origin) -> str | None:
    if not origin.nans:
        return None
    return (
        "Choose instead of multiplying: torch.where(mask, x, torch.zeros_like(x)) or x.masked_fill(~mask, 0.0). 0 · inf is NaN, "
        "so a product cannot hide an Inf."
    )


def _softmax(origin: Origin) -> str:
    return (
        "Leave at least one entry of each row unmasked, or fill with a finite number: scores.masked_fill(mask, -1e9). A row of "
        "nothing but -inf has no softmax."
    )


def _std(origin: Origin) -> str:
    return (
        f"Pass unbiased=False to {origin.operation}, or leave out batches of one sample (drop_last=True in the DataLoader): the "
        "spread of a single value divides by n - 1 = 0."
    )


def _acos(origin: Origin) -> str:
    beyond = origin.direction == "forward" and any(low < -1 or high > 1 for low, high in origin.inputs[:1])
    why = "it has no value beyond 1" if beyond else "its slope is infinite at 1 and -1"
    return f"Write torch.{origin.operation}(x.clamp(-1 + 1e-6, 1 - 1e-6)): {why}."


def _negative_root(origin: Origin) -> str:
    return "Write torch.sqrt(x.clamp(min=1e-12)): a negative number has no real root."


def _root(origin: Origin) -> str:
    if origin.makers[:1] in (("sum",), ("mean",)) and len(origin.makers) > 1 and origin.makers[1] in SQUARES:
        return (
            "Write torch.linalg.norm(x) instead of sqrt((x**2).sum()), or sqrt((x**2).sum() + 1e-12): the slope of a root is "
            "infinite at 0."
        )
    return "Write torch.sqrt(x + 1e-6): the slope of a root is infinite at 0."


def _small_power(origin: Origin) -> str:
    return "Write (x + 1e-6) ** p: the slope of a power below 1 is infinite at 0."


def _norm(origin: Origin) -> str:
    return "Add a small constant under the root: torch.sqrt((x**2).sum() + 1e-12)."


def _cross_entropy(origin: Origin) -> str:
    if origin.nans:
        return (
            "Leave out batches in which every target is ignore_index, or divide yourself: F.cross_entropy(…, reduction='sum') / "
            "count.clamp(min=1). A mean over nothing is NaN."
        )
    return "Leave the score of the right class unmasked: its -inf makes the loss infinite."


def _mean(origin: Origin) -> str | None:
    return "Write x.sum() / max(x.numel(), 1), or skip the batch: the mean of nothing is NaN." if origin.nans else None


FORWARD: dict[str, Said] = {
    **dict.fromkeys(("log", "log2", "log10", "log1p"), _log),
    **dict.fromkeys(("div", "reciprocal", "rsqrt"), _div),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh"), _exp),
    **dict.fromkeys(("softmax", "log_softmax", "multi_head_attention_forward", "scaled_dot_product_attention"), _softmax),
    **dict.fromkeys(("std", "var", "std_mean", "var_mean"), _std),
    **dict.fromkeys(("acos", "asin"), _acos),
    **dict.fromkeys(("cross_entropy", "nll_loss"), _cross_entropy),
    "pow": _pow,
    "mul": _mul,
    "sqrt": _negative_root,
    "mean": _mean,
}
BACKWARD: dict[str, Said] = {
    **dict.fromkeys(("log", "log2", "log10", "log1p"), _log),
    **dict.fromkeys(("sqrt", "rsqrt"), _root),
    **dict.fromkeys(("acos", "asin"), _acos),
    **dict.fromkeys(("norm", "hypot"), _norm),
    **dict.fromkeys(("std", "var"), _std),
    "pow": _small_power,
    "div": _div,
}
