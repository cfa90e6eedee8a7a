"""Graphs of earlier steps stay in memory."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Failure, Holder, Retention, Step
from sleuth.core.stage import Confidence, Severity, Stage

# A few losses are kept on purpose (a moving window, several parts of one step); nobody needs dozens of graphs.
KEPT = 48
# Of the most that were alive: when it falls this low, somebody let go of them, as at the end of an epoch.
RELEASED = 0.25


@check(
    code="T424",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Retention,),
    explains=("memory-grows", "backward-fails", "out-of-memory"),
    title="Graphs of earlier steps stay in memory",
    why="""A loss, or an output, that is kept as a tensor keeps the whole recorded computation of its step alive, and what is
    added to it keeps all the earlier ones. Memory rises with every step, and freeing the long chain at last may take minutes.""",
    fix="""Keep numbers instead of tensors: total += loss.item(), losses.append(loss.item()); for outputs, output.detach().""",
    decided_by="marks laid on the graphs of some steps: how many of them are still alive, and whose variable holds them",
    symptoms=(
        "memory grows every iteration",
        "out of memory after some epochs",
        "total_loss += loss keeps the graph",
        "training becomes slower and slower",
        "CUDA out of memory after a few hundred steps",
    ),
)
def graph_retained(seen: Seen, *, kept: int = KEPT, released: float = RELEASED) -> Iterator[Evidence | NotExamined]:
    noted = seen.all(Retention)
    if any(r.through == "model" for r in noted):
        return  # the state that drags them along is hidden-state-not-detached
    if (summed := next((r for r in noted if r.failed and r.through == "loss"), None)) is not None:
        yield _used_twice(summed, next((f for f in seen.all(Failure) if f.phase == "backward"), None))
        return
    most = max(noted, key=lambda r: r.alive)
    last = max([s.step for s in seen.all(Step)[-1:]] + [noted[-1].step])
    if most.alive < kept:
        if last < kept:
            yield NotExamined(f"only {last + 1} steps were seen")
        return
    after = [r for r in noted if r.step > most.step]
    let_go = any(r.alive <= released * most.alive for r in after)
    first = next(r for r in noted if r.alive >= kept)
    # As many steps have gone by since as are held: it does not grow any more.
    bounded = not let_go and last - most.step >= most.alive
    yield _evidence(noted, most, first, let_go, bounded)


def _evidence(noted: list[Retention], most: Retention, first: Retention, let_go: bool, bounded: bool) -> Evidence:
    # A search that came upon no holder knows only the line of the backward.
    searched = sorted((r for r in noted if r.location is not None), key=lambda r: (r.holder is not None, r.step))
    holder, location = (searched[-1].holder, searched[-1].location) if searched else (None, None)
    held = f"{holder.name} holds them ({holder.what})" if holder is not None else "who holds them was not found"
    course = "and were let go later" if let_go else "and stay about as many" if bounded else "and there are more with every step"
    return Evidence(
        summary=f"at step {most.step:,} the graphs of {most.alive:,} earlier steps are still in memory {course}; {held}",
        where=holder.name if holder is not None else None,
        location=location,
        numbers={"steps": most.alive, "holder": holder.name if holder is not None else None},
        series=(Series("graphs alive", tuple(float(r.step) for r in noted), tuple(float(r.alive) for r in noted)),),
        severity=Severity.WARNING if let_go else Severity.HINT if bounded else Severity.ERROR,
        fix=_fix(holder),
        first_step=first.step - first.alive if first.step > first.alive else 0,
        last_step=most.step,
        strength=most.alive / KEPT,
    )


def _fix(holder: Holder | None) -> str | None:
    if holder is None:
        return None
    if holder.count == 1:
        return f"Add numbers instead of tensors: {holder.name} += loss.item()."
    return f"Put numbers into {holder.name}: loss.item(); or tensors without their graph: output.detach()."


def _used_twice(summed: Retention, failure: Failure | None) -> Evidence:
    steps = f"{summed.dragged} earlier step" + ("s" if summed.dragged > 1 else "")
    return Evidence(
        summary=f"the loss of step {summed.step:,} was added to that of {steps}, whose graph is used up: its backward raised",
        location=failure.location if failure is not None and failure.location is not None else summed.location,
        numbers={"steps": summed.dragged},
        fix=f"{failure.advice[0].upper()}{failure.advice[1:]}."
        if failure is not None and failure.advice
        else "Call backward() on the loss of this step alone, and keep the running total apart: total += loss.item().",
    )
