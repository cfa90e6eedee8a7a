"""Parameters that cannot learn."""

from collections.abc import Iterator

from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Parameter, Role, Step
from sleuth.core.reading.lines import layer_line
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import FrozenRest, FrozenTrunk

# Fixed filters, positions and tables are frozen on purpose; so are norms in fine-tuning.
WEIGHTY = ("linear", "conv", "recurrent", "attention")
# Where the frozen ones hold most of the numbers (adapters on a frozen base), freezing is the plan.
MINORITY = 1 / 3
# One frozen random layer is a known method (random features, extreme learning machines, echo states); a deep one is not.
LEAST_LAYERS = 2
# Frozen random layers that hold most of the weights leave little that could make up for them.
MAJORITY = 0.5


@check(
    code="M218",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.LIKELY,
    reads=(Architecture,),
    explains=(
        "backward-fails",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "loss-not-decreasing",
        "zero-gradients",
        "weights-do-not-change",
        "disconnected-parameters",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "learns-without-input",
        "underfitting",
        "capacity-too-small",
    ),
    title="Parameters are frozen",
    why="""A parameter with requires_grad=False gets no gradient and keeps its value. That is right for a pretrained trunk, and
    wrong for a layer that should learn the task, above all the last one.""",
    fix="Unfreeze what should learn: for p in layer.parameters(): p.requires_grad_(True), before the optimiser is built.",
    decided_by="the trainable flag of each parameter",
    symptoms=(
        "weights do not change",
        "requires_grad is False",
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "forgot to unfreeze the layers",
        "fine-tuning does not learn",
        "gradients are None",
    ),
)
def frozen_parameters(seen: Seen, *, minority: float = MINORITY) -> Iterator[Evidence | NotExamined]:
    parameters = [p for p in seen.one(Architecture).parameters if p.tied_to is None]
    if not parameters:
        yield NotExamined("the model has no parameters")
        return
    if not any(p.trainable for p in parameters):
        yield Evidence(
            location=seen.one(Architecture).frozen_at,
            summary=f"all {len(parameters)} parameters are frozen: nothing can learn",
            numbers={"frozen": len(parameters), "parameters": len(parameters)},
            severity=Severity.ERROR,
            confidence=Confidence.CERTAIN,
            strength=float(len(parameters)),
        )
        return
    order = {tensor.path: i for i, tensor in enumerate(seen.first(Role.ACTIVATION))}
    matrices = [p for p in parameters if p.family in WEIGHTY and len(p.shape) >= 2 and p.layer in order]
    matrices.sort(key=lambda p: order[p.layer])
    frozen = [p for p in matrices if not p.trainable]
    few = sum(p.size for p in frozen) <= minority * sum(p.size for p in matrices)
    if (rest := seen.maybe(FrozenRest)) is not None and rest.fresh is not None:
        yield _nothing_else_learns(seen, rest)
        return
    if not frozen or len(frozen) == len(matrices):
        return
    if not matrices[-1].trainable and matrices[-2].trainable:
        yield _frozen_head(seen, matrices[-1])
    elif few and (odd := _between(matrices)):
        yield _scattered(seen, odd)
    elif (trunk := seen.maybe(FrozenTrunk)) is not None and trunk.mark is not None and trunk.layers >= LEAST_LAYERS:
        yield from _untrained(seen, trunk)


def _untrained(seen: Seen, trunk: FrozenTrunk) -> Iterator[Evidence]:
    share = trunk.numbers / trunk.total
    if share > MAJORITY:
        yield Evidence(
            where=trunk.first,
            location=_place(seen, trunk.first),
            summary=f"{trunk.first} to {trunk.last}, {share:.0%} of all weights, are frozen although they were never trained: "
            f"{trunk.mark}",
            numbers={"layers": trunk.layers, "numbers": trunk.numbers, "share": share},
            fix="Load the pretrained weights before freezing (in torch: load_state_dict, weights=...), or unfreeze the trunk "
            "before the optimiser is built (in torch: for p in trunk.parameters(): p.requires_grad_(True)).",
            strength=share,
        )


def _nothing_else_learns(seen: Seen, rest: FrozenRest) -> Evidence:
    progress = progress_of(seen.all(Step))
    return Evidence(
        where=rest.fresh,
        location=_place(seen, rest.fresh),
        summary=f"only {rest.learning} numbers learn, all of them biases, scales or single ones; the {rest.frozen} of the "
        f"weights are frozen, and {rest.fresh} was never trained: {rest.mark}",
        numbers={"learning": rest.learning, "frozen": rest.frozen},
        # Shifts and scales alone can bring some way, and some people try how far.
        severity=Severity.HINT if progress is not None and progress.works else None,
        strength=rest.frozen / max(rest.learning, 1),
    )


def _place(seen: Seen, path: str | None) -> Location | None:
    """The line that freezes; a layer that is made frozen has it in the line that makes it."""
    return seen.one(Architecture).frozen_at or layer_line(seen, path)


def _frozen_head(seen: Seen, head: Parameter) -> Evidence:
    return Evidence(
        where=head.path,
        location=_place(seen, head.path),
        summary=f"{head.path}, the last layer, is frozen while the layers before it learn",
        numbers={"shape": list(head.shape)},
    )


def _between(matrices: list[Parameter]) -> list[Parameter]:
    """Single frozen matrices with learning neighbours on both sides; a frozen stretch is somebody's decision."""
    triples = zip(matrices, matrices[1:], matrices[2:], strict=False)
    return [here for before, here, after in triples if before.trainable and not here.trainable and after.trainable]


def _scattered(seen: Seen, odd: list[Parameter]) -> Evidence:
    return Evidence(
        where=odd[0].path,
        location=_place(seen, odd[0].path),
        summary=f"{', '.join(p.path for p in odd[:3])} {'is' if len(odd) == 1 else 'are'} frozen between layers that learn",
        numbers={"frozen": len(odd)},
        severity=Severity.HINT,
        confidence=Confidence.POSSIBLE,
    )
