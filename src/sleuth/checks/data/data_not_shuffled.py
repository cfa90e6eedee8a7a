"""Samples come sorted by label, or in the same order in every epoch."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import CallKind
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Order

# With half the runs of a random order a label stands twice as long as it should: batches see few classes.
FEW_RUNS = 0.5
# Beyond chance: a random order has so few runs less than once in a billion.
STANDARD_ERRORS = 6.0
# Fewer labels are sorted by chance or by nobody's fault.
LEAST_SAMPLES = 32
# A real-valued target rises and falls with time in honest series; sorted, it crosses its mean once.
SORTED_RUNS = 3
# In a list of batches the user's loop may draw their order: there only batches of one class are telling.
MOSTLY = 0.5


@check(
    code="D113",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Order,),
    explains=(
        "class-imbalance",
        "learns-without-input",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-decreasing",
        "loss-diverges",
        "initial-loss-off",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "predicts-one-class",
        "collapsed-output",
        "train-val-shift",
        "batch-size-off",
        "capacity-too-small",
    ),
    title="Samples do not come in random order",
    why="""Each step learns from its batch alone. When batches come sorted by class, a step unlearns what the one before
    it learned, and normalisation sees one class at a time; in a fixed order the same samples always meet.""",
    fix="Shuffle in the loader: DataLoader(data, batch_size=…, shuffle=True).",
    decided_by="how often the label changes from sample to sample, against a random order",
    symptoms=(
        "loss jumps up and down in a pattern",
        "forgot shuffle=True",
        "predicts only the last class",
        "loss oscillates within each epoch",
        "accuracy drops at the start of every epoch",
        "batches hold only one class",
    ),
)
def data_not_shuffled(seen: Seen, *, few_runs: float = FEW_RUNS) -> Iterator[Evidence | NotExamined]:
    order = seen.one(Order)
    if order.order_is_ours:
        yield NotExamined("no loader was given: sleuth itself draws the batches")
    elif _is_sorted(order, few_runs):
        yield _sorted(order, place_of(seen, CallKind.MADE_LOADER))
    elif order.epochs_in_same_order:
        yield Evidence(
            location=place_of(seen, CallKind.MADE_LOADER),
            summary="two epochs bring the same samples in the same order; their labels are well mixed",
            severity=Severity.HINT,
            confidence=Confidence.CERTAIN,
        )
    elif order.epochs_in_same_order is None and not order.samples:
        yield NotExamined("there are no labels whose order could be judged, and no second epoch to compare")
    elif order.batches < 2 and order.epochs_in_same_order is None:
        yield NotExamined("one batch is the whole set: its order does not matter")


def _is_sorted(order: Order, few_runs: float) -> bool:
    if order.samples < LEAST_SAMPLES or order.batches < 2:
        return False
    if order.real_target and order.runs > SORTED_RUNS:
        return False
    if order.batches_fixed and order.single_class_batches < MOSTLY * order.batches:
        return False
    below = order.expected_runs - order.runs
    return order.runs < few_runs * order.expected_runs and below > STANDARD_ERRORS * order.runs_std


def _sorted(order: Order, place: Location | None) -> Evidence:
    what = "the target" if order.real_target else "the label"
    change = "crosses its mean" if order.real_target else "changes"
    alone = f"; {order.single_class_batches} of {order.batches} batches hold one class only" if not order.real_target else ""
    return Evidence(
        location=place,
        summary=f"{what} {change} {order.runs - 1} times in {order.samples} samples where a random order would have "
        f"{order.expected_runs - 1:.0f} changes{alone}",
        numbers={
            "runs": order.runs,
            "expected_runs": order.expected_runs,
            "single_class_batches": order.single_class_batches,
            "batches": order.batches,
        },
        strength=order.expected_runs / order.runs,
    )
