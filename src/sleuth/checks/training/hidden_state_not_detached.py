"""A recurrent state drags the graph of earlier batches along."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Retention, Step
from sleuth.core.stage import Confidence, Severity, Stage

# A window over some batches may be meant; it ends somewhere.
DRAGGED = 24
LEAST_STEPS = 48


@check(
    code="T432",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Retention,),
    explains=("backward-fails", "graph-retained", "memory-grows", "out-of-memory"),
    title="A state drags the graph of earlier batches along",
    why="""A state that goes from batch to batch carries the recorded computation of all batches before. The next backward then
    walks through all of them: it raises, because the first backward used them up or the step changed their weights, and with
    retain_graph=True every step takes longer and more memory than the one before.""",
    fix="""Cut the state from its history between batches: h = h.detach() before the model is called (for an LSTM both parts),
    and leave retain_graph out.""",
    decided_by="how many earlier steps the graph of a step's loss goes back to, through what the model is given",
    symptoms=(
        "Trying to backward through the graph a second time",
        "need to specify retain_graph=True",
        "each iteration takes longer than the last with an RNN",
        "modified by an inplace operation with retain_graph=True",
        "hidden state between batches",
    ),
)
def hidden_state_not_detached(seen: Seen, *, dragged: int = DRAGGED) -> Iterator[Evidence | NotExamined]:
    noted = seen.all(Retention)
    guilty = [r for r in noted if r.through == "model" and (r.failed or r.dragged >= dragged)]
    if guilty:
        yield _evidence(guilty[0])
        return
    last = max([s.step for s in seen.all(Step)[-1:]] + [noted[-1].step])
    if last < LEAST_STEPS:
        yield NotExamined(f"only {last + 1} steps were seen")


def _evidence(found: Retention) -> Evidence:
    name = found.holder.name if found.holder is not None else None
    steps = f"{found.dragged} earlier step" + ("s" if found.dragged > 1 else "")
    through = f"through {name}" if name else "through what the model is given or keeps"
    what = f"the graph of the loss of step {found.step:,} goes back into {steps}, {through}"
    cut = f"{name} = {name}.detach(), of a pair {name} = tuple(part.detach() for part in {name})"
    return Evidence(
        summary=f"{what}; its backward raised" if found.failed else f"{what}, and every step adds to it",
        where=name,
        location=found.location,
        numbers={"steps": found.dragged, "state": name},
        fix=f"Cut the state from its history before the model is called: {cut}." if name else None,
        # The exception has no step: it is explained by whatever was there before it.
        first_step=None if found.failed else found.step - found.dragged,
        strength=float(found.dragged),
    )
