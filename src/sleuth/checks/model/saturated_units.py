"""Sigmoids or tanhs stand at their ends, where they pass no gradient."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Role, Units
from sleuth.core.stage import Severity, Stage

# Inputs of a fresh layer have a spread of about one, which puts a twentieth of tanhs and no sigmoid at an end.
PINNED_SHARE = 0.5
# A few units may all be at an end by chance.
LEAST_UNITS = 4


@check(
    code="M215",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=((Units, Role.ACTIVATION),),
    explains=(
        "vanishing-gradients",
        "zero-gradients",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "input-ignored",
        "collapsed-output",
        "loss-not-decreasing",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "update-too-small",
        "underfitting",
        "predicts-one-class",
        "capacity-too-small",
    ),
    title="Most units of a layer are pinned to their ends",
    why="""At its ends a sigmoid or tanh is flat: it gives the same answer whatever comes in and passes almost no
    gradient back. Weights that are too large, or inputs far from zero, push units there.""",
    fix="""Scale the inputs to about zero mean and unit spread, initialise with nn.init.xavier_uniform_, put a
    normalisation before the activation, or use ReLU.""",
    decided_by="the share of activations that stand at an end",
    symptoms=(
        "sigmoid saturates",
        "tanh outputs are all 1 or -1",
        "gradients are zero",
        "activations stuck at 0 and 1",
    ),
)
def saturated_units(seen: Seen, *, pinned_share: float = PINNED_SHARE) -> Iterator[Evidence | NotExamined]:
    shares: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, str] = {}
    # A sigmoid that has learned to answer yes or no stands at an end for a good reason.
    for units in seen.before_steps(seen.all(Units)):
        if units.pinned is not None and len(units.min) >= LEAST_UNITS:
            shares[units.path].append(units.pinned)
            kinds[units.path] = units.activation
    if not shares:
        architecture = seen.maybe(Architecture)
        if architecture is None or architecture.has("recurrent"):
            yield NotExamined("the sigmoids and tanhs inside recurrent layers cannot be looked at")
        return
    for path, found in shares.items():
        share = float(np.mean(found))
        if share > pinned_share:
            yield Evidence(
                where=path,
                summary=f"{share:.0%} of the values of {path} ({kinds[path]}) stand at an end and pass almost no gradient",
                numbers={"share": share},
                strength=share / pinned_share,
            )
