"""The loss jumps up at single steps and comes back."""

from collections.abc import Iterator
from itertools import pairwise

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.history import CAPACITY
from sleuth.core.observation import Call, Ending, Jump, Step
from sleuth.core.reading.curve import guessing, loss_curve
from sleuth.core.recording.jumps import Jumps
from sleuth.core.stage import Severity, Stage

LEAST_STEPS = 200
# Once may be meant: another task, other data.
LEAST_SPIKES = 3
# Times what the highest of the 32 losses before is above their middle: losses with a heavy tail reach half of that.
HEIGHT = 8.0
# Of what an untrained model loses: a jump below that is no trouble, however rare.
WORTH = 0.5
# A heavy tail has two smaller ones for each large one; spikes stand alone.
SMALLER = 1 / 3
# Of all steps: what comes more often is not isolated.
MOST = 0.05
# Steps: what comes every so many of them, at every turn, is another loss that is meant.
IN_TURN = 64
LISTED = 5


@check(
    code="T406",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, (Call, Ending)),
    title="The loss jumps up at single steps",
    why="""A few batches give a loss far above all others: a broken sample among them, a value that was not scaled, a wrong
    label, or a step that was too long. Each of them throws the weights off, and the optimiser needs a while to forget
    it.""",
    fix="""Look at the batches of these steps for values or labels unlike the others; clip the gradients (in torch:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the step).""",
    symptoms=(
        "loss spikes",
        "sudden jumps in the loss",
        "loss jumps up and recovers",
        "random spikes in training loss",
        "a few batches have a huge loss",
    ),
    decided_by="jumps against the losses just before them, and the gap between them and all smaller ones",
)
def loss_spikes(seen: Seen, *, height: float = HEIGHT, worth: float = WORTH) -> Iterator[Evidence | NotExamined]:
    curve = loss_curve(seen)
    total = seen.count(Step)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    if len(curve) < LEAST_STEPS:
        yield NotExamined(f"only {len(curve)} steps were seen")
        return
    start = max(float(curve.losses[:3].max()), guessing(seen) or 0.0)
    # A long training's steps are thinned; its jumps were noted as they happened.
    jumps = list(Jumps().found(seen.all(Step))) if total <= CAPACITY else seen.all(Jump)
    spikes = [j for j in jumps if _stands_out(j, start, height, worth)]
    if not LEAST_SPIKES <= len(spikes) <= MOST * total or _in_turn(spikes) or _tail(jumps, spikes):
        return
    highest = max(spikes, key=lambda j: j.loss)
    named = ", ".join(f"{j.step:,}" for j in spikes[:LISTED]) + (", …" if len(spikes) > LISTED else "")
    yield Evidence(
        summary=f"at {len(spikes)} of {total:,} steps ({named}) the loss jumps up, to {highest.loss:.3g} where "
        f"{highest.usual:.2g} is usual, and comes back",
        numbers={"spikes": len(spikes), "highest": highest.loss, "usual": highest.usual, "at": [j.step for j in spikes[:20]]},
        series=(Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(curve.losses.tolist())),),
        first_step=spikes[0].step,
        last_step=spikes[-1].step,
        strength=float(len(spikes)),
    )


def _stands_out(jump: Jump, start: float, height: float, worth: float) -> bool:
    up = jump.loss - jump.usual
    return jump.back and not jump.raised and up > height * jump.spread and up > worth * (start - jump.usual)


def _in_turn(spikes: list[Jump]) -> bool:
    between = {b.step - a.step for a, b in pairwise(spikes)}
    return len(spikes) > LEAST_SPIKES and len(between) == 1 and max(between) <= IN_TURN


def _tail(jumps: list[Jump], spikes: list[Jump]) -> bool:
    """Are there as many smaller jumps as there would be in a heavy tail?"""
    least = min(j.loss - j.usual for j in spikes)
    smaller = [j for j in jumps if SMALLER * least < j.loss - j.usual < least]
    return len(smaller) > len(spikes) / 2
