"""What a wrong gradient is, said in words."""

from sleuth.core.trial import GradientError, GradientTerm

# What a second backward showed → (summary, fix).
REPEATS = {
    "accumulates": (
        "the gradients grow from step to step: on the same batch, with the same weights, each backward adds the same once more "
        "to what the one before has left, and nothing that was given resets them",
        "Assign the gradients (self.dW = …) instead of adding (self.dW += …), or set them to zero before each backward; where "
        "your loop does that by itself, put it into a method zero_grad(), which is called here too.",
    ),
    "stale": (
        "backward answers for an earlier batch: after another batch the gradients of this one are not its own",
        "Let forward keep its inputs and activations anew at every call, and let backward use those.",
    ),
}


def in_words(error: GradientError, bad: list[GradientError]) -> str:
    term = error.term
    assert term is not None
    same = [p.path for p in bad if p.term is not None and _alike(p.term, term)]
    others = [p.path for p in bad if p.path not in same]
    rest = f"; {listed(others)} {'is' if len(others) == 1 else 'are'} off too, as what flows back passes there" if others else ""
    return f"backward gives {listed(same)} a gradient that is {_what(term)}{rest}"


def _alike(one: GradientTerm, other: GradientTerm) -> bool:
    return (one.kind, one.name) == (other.kind, other.name) and abs(one.factor - other.factor) <= 1e-3 * abs(other.factor)


def listed(paths: list[str], most: int = 4) -> str:
    if len(paths) > most:
        return f"{len(paths)} parameters ({', '.join(paths[:2])}, …)"
    return " and ".join(filter(None, (", ".join(paths[:-1]), paths[-1])))


def _what(term: GradientTerm) -> str:
    size, sign = abs(term.factor), ", with the wrong sign" if term.factor < 0 else ""
    match term.kind:
        case "batch":
            return f"{size:g} times too large{sign}: the mean over the batch ({term.samples}) is missing"
        case "mean":
            return f"{1 / size:g} times too small{sign}: it is divided by the size of the batch ({term.samples}) once too often"
        case "transposed":
            return "the transpose of the right one"
        case "activation":
            return f"right but for the derivative of {term.name}, which is left out"
        case "sample":
            return f"that of the {term.name} sample alone: the sum over the batch is missing"
        case "nothing":
            return "zero, although the loss changes with it: backward leaves it out"
        case "everything":
            return "one number for all of its entries: it is summed over the units as well as over the batch"
    if abs(size - 1) < 1e-4:
        return "of the wrong sign"
    return f"{size:.4g} times the right one{sign}"


def cure(error: GradientError) -> str | None:
    term = error.term
    if term is None:
        return None
    match term.kind:
        case "batch":
            return "Divide the gradient of the loss by the number of samples: dout = (p - y) / len(y)."
        case "mean":
            return "Divide by the number of samples once, in the gradient of the loss, and sum over the batch after that."
        case "transposed":
            return f"Transpose the gradient of {error.path}: for y = x @ W it is x.T @ dy, for y = x @ W.T it is dy.T @ x."
        case "activation":
            return f"Multiply what flows back by the derivative of {DERIVATIVES.get(term.name, 'the activation')}."
        case "sample":
            return f"Sum over the batch for the gradient of {error.path}: dy.sum(axis=0)."
        case "nothing":
            return (
                f"Compute the gradient of {error.path} in backward: for y = x @ W + b it is x.T @ dy for W, dy.sum(axis=0) for b."
            )
        case "everything":
            return (
                f"Sum over the batch alone for the gradient of {error.path}: dy.sum(axis=0), where the first axis is the batch."
            )
    if abs(abs(term.factor) - 1) < 1e-4:
        return f"Turn the sign of the gradient of {error.path}; or the update adds it on purpose: then subtract and turn both."
    return f"Derive the gradient of {error.path} again: a factor of {1 / term.factor:.4g} is missing."


DERIVATIVES = {
    "relu": "ReLU: dy * (z > 0)",
    "tanh": "tanh: dy * (1 - y**2), where y = tanh(z)",
    "sigmoid": "the sigmoid: dy * y * (1 - y), where y = sigmoid(z)",
    "every activation": "each activation, such as dy * (z > 0) for ReLU",
}


def decay_in_gradients(error: GradientError) -> str:
    assert error.term is not None
    return (
        f"the gradients hold a weight decay of {error.term.factor:.3g} that the loss does not: "
        "give a loss with its penalty to have them checked"
    )
