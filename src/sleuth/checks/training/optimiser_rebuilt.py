"""A new optimiser again and again, and what the old one had learned is lost."""

from collections.abc import Iterator
from statistics import median

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Optimiser, Step
from sleuth.core.stage import Severity, Stage

# Once or twice is a new phase of the training: another part is trained, or the same with another method.
LEAST_TIMES = 3
# Where no loader tells the epochs, a new phase looks the same: more of them, and short ones.
LEAST_TIMES_UNHEARD = 5
SHORT_STEPS = 200
# Of the tensors must be the same: with others it is another training.
SHARED = 0.8
# Starting this one anew, as its own line searches do, is a known method.
RESTARTED = ("LBFGS",)


@check(
    code="T423",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, Optimiser),
    explains=("loss-oscillates", "loss-spikes", "loss-not-decreasing", "update-too-large", "underfitting", "stopped-too-early"),
    title="The optimiser is made anew again and again",
    why="""Adam, RMSprop and momentum remember earlier gradients; that memory sets the direction and size of every step. A new
    optimiser starts without it: its first steps are as large as the rate allows, whatever the gradients say.""",
    fix="""Make the optimiser once, before the loop over epochs; to change its rate use a schedule (in torch also
    optimizer.param_groups).""",
    decided_by="how many optimisers stepped on the same parameters, one after the other",
    symptoms=(
        "loss jumps at the start of every epoch",
        "loss spikes every epoch",
        "optimizer state is lost",
        "momentum has no effect",
        "training stalls after each epoch",
    ),
)
def optimiser_rebuilt(seen: Seen, *, least_times: int = LEAST_TIMES, shared: float = SHARED) -> Iterator[Evidence | NotExamined]:
    met = seen.all(Optimiser)
    kinds = {o.number: o.kind for o in met}
    returned = {o.number for o in met if o.returned}
    anew = [o for o in met if not o.returned and _replaces(o, kinds, returned, shared)]
    # Several epochs with each of them: they are phases that somebody planned.
    passes = median(o.passes for o in anew) if anew else 0
    if passes > 1 or len(anew) < least_times:
        # So many replacements need a step more than that; an optimiser without a state has none to lose.
        taken = 1 + max(*(s.step for s in seen.all(Step)), *(o.step for o in met))
        if taken <= least_times and any(o.stateful and o.kind not in RESTARTED for o in met):
            yield NotExamined(f"only {taken} steps were seen")
        return
    steps = median(o.predecessor_steps for o in anew)
    if passes == 0 and steps > 1 and (len(anew) < LEAST_TIMES_UNHEARD or steps > SHORT_STEPS):
        return
    yield Evidence(
        summary=f"{len(anew) + 1} optimisers ({anew[-1].kind}) trained the same parameters one after the other, each for about "
        f"{steps:.0f} steps: every new one starts without the state of the one before",
        location=next((o.location for o in anew if o.location is not None), None),
        numbers={"optimisers": len(anew) + 1, "steps_each": steps},
        first_step=anew[0].step,
        last_step=anew[-1].step,
        strength=float(len(anew)),
    )


def _replaces(one: Optimiser, kinds: dict[int, str], returned: set[int], shared: float) -> bool:
    before = one.predecessor
    if before is None or before in returned or one.kind != kinds.get(before) or one.kind in RESTARTED:
        return False
    same = one.shared >= shared * max(one.parameters, one.predecessor_parameters)
    return same and one.stateful and not one.carried and not one.rewritten
