"""Dropout throws away more than it leaves, or falls on the output itself."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Role
from sleuth.core.stage import Confidence, Severity, Stage

# Srivastava et al. 2014 keep at least half of the hidden units; beyond it most of what a layer computes is thrown away.
STRONG = 0.5


@check(
    code="M226",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Architecture, Role.ACTIVATION),
    explains=(
        "train-eval-disagree",
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "underfitting",
        "validation-too-good",
        "learning-rate-too-low",
    ),
    title="Dropout removes most of the signal",
    why="""Each training step sees only what dropout leaves. Above one half, the next layer gets mostly zeros and
    learns from noise; on the output, the answer itself is zeroed at random.""",
    fix="""Lower p to between 0.1 and 0.5, and take dropout off the last layer.""",
)
def dropout_too_strong(seen: Seen, *, strong: float = STRONG) -> Iterator[Evidence | NotExamined]:
    layers = {layer.path: layer for layer in seen.one(Architecture).layers}
    ran = [layers[t.path] for t in seen.first(Role.ACTIVATION) if t.path in layers]
    for position, layer in enumerate(ran):
        share = layer.settings.get("p")
        if layer.family != "dropout" or not isinstance(share, int | float):
            continue
        if position == len(ran) - 1 and share > 0:
            yield Evidence(
                where=layer.path,
                summary=f"dropout p={share:g} is the last layer: {share:.0%} of the outputs are set to zero at random",
                fix=f"Remove the dropout {layer.path} after the last layer.",
                numbers={"p": share},
                strength=1 + share,
            )
        elif share > strong:
            yield Evidence(
                where=layer.path,
                summary=f"dropout {layer.path} has p={share:g}: only {1 - share:.0%} of the units are left in each step",
                numbers={"p": share},
                strength=share / strong,
            )
