"""A bias that the next normalisation takes away again."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.reading.flow import WEIGHTY, Chain, chain_to, users
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Flow


@check(
    code="M227",
    stage=Stage.MODEL,
    severity=Severity.HINT,
    confidence=Confidence.CERTAIN,
    reads=(Flow,),
    title="A bias is removed by the norm that follows",
    why="""Batch norm and instance norm subtract the mean of each channel, and with it any constant that was added before: the
    bias gets no gradient, takes memory, and does nothing. A norm with affine=True has a bias of its own.""",
    fix="""Pass bias=False to the layer before the normalisation.""",
    decided_by="whether a normalisation follows right after a bias",
    symptoms=(
        "bias before batch norm",
        "some biases have no gradient",
        "should I use bias=False",
        "useless parameters",
    ),
)
def bias_before_norm(seen: Seen) -> Iterator[Evidence | NotExamined]:
    flow = seen.one(Flow)
    used = users(flow)
    norms = [i for i, o in enumerate(flow.operations) if o.settings.get("centres") is not None]
    chains = [chain for i in norms if (chain := chain_to(flow, i, ("reshape",), used)) and _wasted(chain)]
    found = {(chain.first.layer, chain.last.layer): chain for chain in chains}  # a layer may run several times
    if found:
        first, norm = (next(iter(found.values())).first, next(iter(found.values())).last)
        more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
        yield Evidence(
            where=first.layer or first.name,
            location=first.location,
            summary=f"the bias of {first.layer or first.name} is subtracted by {norm.layer or norm.name} ({norm.name}) "
            f"right after it{more}",
            numbers={"layers": len(found)},
            strength=len(found),
        )


def _wasted(chain: Chain) -> bool:
    """Is the bias one number a channel, for the very channels whose mean is taken away?"""
    return (
        chain.first.family in WEIGHTY
        and chain.first.settings.get("bias") is True
        and chain.features() == (chain.last.settings["centres"], False)
    )
