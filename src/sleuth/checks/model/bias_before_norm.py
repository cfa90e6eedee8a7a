"""A bias that the next normalisation takes away again."""

from collections.abc import Iterator
from itertools import pairwise

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Layer, Role
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="M227",
    stage=Stage.MODEL,
    severity=Severity.HINT,
    confidence=Confidence.CERTAIN,
    reads=(Architecture, Role.ACTIVATION),
    title="A bias is removed by the norm that follows",
    why="""Batch-norm subtracts the mean of each feature, and with it any constant that was added before: the bias
    gets no gradient, takes memory, and does nothing. The norm has a bias of its own.""",
    fix="""Pass bias=False to the layer before the normalisation.""",
)
def bias_before_norm(seen: Seen) -> Iterator[Evidence | NotExamined]:
    layers = {layer.path: layer for layer in seen.one(Architecture).layers}
    ran = [layers[t.path] for t in seen.first(Role.ACTIVATION) if t.path in layers]
    found = [(a, b) for a, b in pairwise(ran) if _wasted(a, b)]
    if found:
        layer, norm = found[0]
        more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
        yield Evidence(
            where=layer.path,
            summary=f"the bias of {layer.path} ({layer.kind}) is subtracted by {norm.path} ({norm.kind}) right after it{more}",
            numbers={"layers": len(found)},
            strength=len(found),
        )


def _wasted(layer: Layer, norm: Layer) -> bool:
    weighty = layer.family in ("linear", "conv") and layer.settings.get("bias") is True
    return weighty and norm.family == "batchnorm" and layer.settings.get("out") == norm.settings.get("in")
