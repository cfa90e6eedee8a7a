"""Each position of a sequence is asked for the very element that it is given."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import LossCall
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Causality, TargetShift

# Noise that a model must undo (masked, dropped or exchanged elements) leaves more positions unequal than this.
SAME = 0.99
# The next element may equal this one in a text of few letters, but not so often.
NEXT = 0.9
# With few kinds of elements, equal ones meet by chance.
CHANCE = 0.5
LEAST_POSITIONS = 64
# A model that shifts its inputs by itself (a start token in front) does not see the element at its own position.
SEEN = 0.9


@check(
    code="D122",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    reads=(TargetShift, Causality),
    explains=("validation-too-good", "predicts-one-class", "capacity-too-large"),
    title="The model is asked for the token that it is given",
    why="""Who predicts the next token compares the output at a position with the token after it. Here the target of each position
    is the input at that very position: copying it solves the task, the loss falls to almost nothing within a few steps, and
    generating yields one token over and over.""",
    fix="""Shift the targets by one: x, y = ids[:, :-1], ids[:, 1:]; or inside the loss:
    cross_entropy(logits[:, :-1].reshape(-1, vocabulary), ids[:, 1:].reshape(-1)).""",
    decided_by="the share of positions whose target is the input at the same position",
    symptoms=(
        "language model loss goes to zero",
        "generates the same token over and over",
        "forgot to shift the labels",
        "loss is near zero after a few steps",
        "perplexity is 1",
    ),
)
def targets_not_shifted(seen: Seen) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(TargetShift)
    if not trial.traced:
        yield NotExamined("what the loss compares with what could not be followed")
        return
    if not trial.integers:
        yield NotExamined("the inputs are numbers, not ids: to give them back may be the task")
        return
    if trial.counted.get(0, 0) < LEAST_POSITIONS or trial.chance > CHANCE:
        yield NotExamined("too few positions or kinds of ids to tell a shift")
        return
    if trial.shares.get(0, 0.0) < SAME or trial.shares.get(1, 0.0) >= NEXT:
        return
    passes = seen.one(Causality)
    if passes.leaking:
        # Autoencoders, sources that are to be copied: all of the input is seen, and given back through a code.
        yield NotExamined("the targets are the inputs, which may be the task of a model that sees all of them at once")
    elif passes.own >= SEEN:
        yield _evidence(seen, trial)


def _evidence(seen: Seen, trial: TargetShift) -> Evidence:
    calls = seen.all(LossCall)
    count = trial.counted[0]
    return Evidence(
        where="target",
        location=calls[0].location if calls else None,
        summary=f"{trial.shares[0]:.0%} of {count:,} targets equal the input at the same position (the next one: "
        f"{trial.shares.get(1, 0.0):.0%}), and the model sees no later one: it need only copy what it is given",
        numbers={"same": trial.shares[0], "next": trial.shares.get(1, 0.0), "positions": count},
        strength=trial.shares[0] / SAME,
    )
