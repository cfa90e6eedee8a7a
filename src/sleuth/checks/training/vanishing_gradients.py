"""Gradients fade on their way to the first layers."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Role
from sleuth.core.stage import Severity, Stage

# Under plain SGD a layer this far below the last one moves ten thousand times slower; rescaling optimisers
# such as Adam hide that at first, but the signal that reaches the layer is as faint.
FADED = 1e-4


@check(
    code="T407",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Role.GRADIENT,),
    explains=("loss-not-decreasing", "update-too-small", "cannot-overfit-one-batch"),
    title="Gradients fade on their way to the first layers",
    why="""Each layer scales the gradient that passes back through it. When most factors are below one,
    their product shrinks with depth: the last layers train, the first stay where they started.""",
    fix="""Match the initialisation to the activation, add normalisation or residual connections,
    or replace a saturating activation such as sigmoid by ReLU.""",
)
def vanishing_gradients(seen: Seen, *, faded: float = FADED) -> Iterator[Evidence | NotExamined]:
    # Biases and norms live on other scales; an exactly zero gradient is a cut graph: that is zero-gradients' business.
    layers = [g for g in seen.first(Role.GRADIENT) if g.path.endswith("weight") and g.rms > 0]
    if len(layers) < 3:
        yield NotExamined("fewer than three layers have a gradient")
        return
    first, last = layers[0], layers[-1]
    ratio = first.rms / last.rms
    if ratio < faded:
        yield Evidence(
            where=first.path,
            summary=f"the gradient of {first.path} is {ratio:.1e} of that of {last.path}",
            numbers={"first": first.rms, "last": last.rms, "ratio": ratio},
            series=(first.series, last.series),
            strength=faded / ratio,
        )
