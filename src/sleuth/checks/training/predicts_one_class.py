"""The model names the same class for every sample, step after step."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Evaluation, Predictions, Split, Step
from sleuth.core.stage import Confidence, Severity, Stage

# A sample or two may fall to another class by chance.
ALMOST_ALL = 0.98
# Where one class has more of the targets, it is the best answer as long as the inputs say little: class-imbalance's business,
# unless the user goes by the accuracy.
MAJORITY = 0.6
# A batch with more of one class says little, unless all data are so.
NEARLY_PURE = 0.9
# So often the user wrote down an accuracy in the later half, and it moved by no more than this.
LEAST_ACCURACIES = 3
SAME_ACCURACY = 1e-3
# Of the cost of knowing the shares only: who pays less tells the classes apart, though never surely enough to name the rare one.
KNOWS_MORE = 0.8
# Between the share of a class in training and the accuracy on other data.
SHARES_DIFFER = 0.1
# An untrained model favours a class too, and many begin by learning which is most frequent.
LEAST_STEPS = 100
LEAST_LOOKS = 5
# Fewer samples hold one class by chance.
LEAST_SAMPLES = 8
# The later part of what was seen: there the model names one class at every look.
LATER = 0.5
# A loss that falls by so many standard errors between the last two quarters, and by this share, is still at work.
ERRORS = 3.0
FALLS = 0.02
# A rate that is so much above its value at half time is still being warmed up.
WARMING = 1.05


@check(
    code="T428",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Predictions, Step),
    title="The model names one class for every sample",
    why="""The output hardly depends on the input any more, or one class outweighs all others in the loss. Accuracy then is the
    share of that class among the targets, however long the training goes on.""",
    fix="""Look at what weighs the classes: weight= and pos_weight= of the loss, the bias of the last layer, how batches are
    drawn. Then see whether the last layer's input differs from sample to sample: print(features.std(0)).""",
    decided_by="how often the model names each class, against the targets, over the later half of the steps",
    symptoms=(
        "model predicts the same class for everything",
        "always predicts one class",
        "accuracy stuck at the majority share",
        "accuracy does not change",
        "predictions are all zeros",
    ),
)
def predicts_one_class(
    seen: Seen, *, almost_all: float = ALMOST_ALL, majority: float = MAJORITY
) -> Iterator[Evidence | NotExamined]:
    steps = seen.all(Step)
    if (reason := _why_not(steps)) is not None:
        yield NotExamined(reason)
        return
    heads = [_later(looks, steps) for looks in _by_place(seen).values()]
    heads = [looks for looks in heads if len(looks) >= LEAST_LOOKS]
    if not heads:
        yield NotExamined("too few batches were seen that hold several classes")
        return
    # Of several heads one may be meant to know nothing, such as a judge of domains that the others are trained against.
    if not all(_share(look.predicted) >= almost_all for looks in heads for look in looks):
        return
    if _still_at_work(steps):
        yield NotExamined("the loss is still falling, or the learning rate still rising")
        return
    if max(_share(_sum(looks)) for looks in heads) <= majority:
        yield _evidence(max(heads, key=len), steps)
    elif len(heads) == 1 and (accuracy := _accuracy_gone_by(seen, heads[0], steps)) is not None:
        yield _misled(heads[0], accuracy)
    else:
        yield NotExamined("one class has most of the targets, and naming it is the best answer as long as the inputs say little")


def _why_not(steps: list[Step]) -> str | None:
    if len({step.optimiser for step in steps}) > 1:
        return "several optimisers work against or beside each other"
    last = max(step.step for step in steps) + 1
    return f"only {last} steps were seen" if last < LEAST_STEPS else None


def _by_place(seen: Seen) -> Mapping[tuple[str, int], list[Predictions]]:
    places: dict[tuple[str, int], list[Predictions]] = defaultdict(list)
    for look in seen.all(Predictions):
        if look.split is Split.TRAIN:
            places[str(look.location), look.outputs].append(look)
    return places


def _later(looks: list[Predictions], steps: list[Step]) -> list[Predictions]:
    """Of batches with several classes. Where each target is another one, samples are told apart and not classes."""
    begin = LATER * max(step.step for step in steps)
    later = [look for look in looks if look.step >= begin and look.samples >= LEAST_SAMPLES and max(look.targets.values()) > 1]
    all_of_them = _sum(later)
    usual = _commonest(all_of_them) if _share(all_of_them) > MAJORITY else None
    mixed = [look for look in later if len(look.targets) > 1]
    return [look for look in mixed if _share(look.targets) <= NEARLY_PURE or _commonest(look.targets) == usual]


def _commonest(counts: Mapping[int, int]) -> int:
    return max(counts, key=lambda label: counts[label])


def _accuracy_gone_by(seen: Seen, looks: list[Predictions], steps: list[Step]) -> float | None:
    """Of the later half, as the user wrote it down: it stands still at the share of the one class that is named."""
    begin = LATER * max(step.step for step in steps)
    logged = [e for e in seen.all(Evaluation) if e.logged and e.split is Split.VALIDATION and e.step >= begin]
    values = [e.metrics[name] for e in logged for name in ("accuracy", "acc") if name in e.metrics]
    if len(values) < LEAST_ACCURACIES or max(values) - min(values) > SAME_ACCURACY:
        return None
    targets = _sum(looks)
    losses = [step.loss for step in steps if step.loss is not None and step.step >= begin]
    if not losses or float(np.mean(losses)) < KNOWS_MORE * _entropy(targets):
        return None
    named = {label for look in looks for label in look.predicted}
    others = sum(count for label, count in targets.items() if label not in named)
    stands = abs(values[-1] - _share(targets)) <= SHARES_DIFFER
    return values[-1] if len(named) == 1 and others >= LEAST_SAMPLES and stands else None


def _share(counts: Mapping[int, int]) -> float:
    return max(counts.values(), default=0) / max(sum(counts.values()), 1)


def _entropy(counts: Mapping[int, int]) -> float:
    shares = np.array(list(counts.values())) / sum(counts.values())
    return float(-(shares * np.log(shares)).sum())


def _sum(looks: list[Predictions]) -> Counter[int]:
    total: Counter[int] = Counter()
    for look in looks:
        total.update(look.targets)
    return total


def _still_at_work(steps: list[Step]) -> bool:
    rates = [step.lr for step in steps if step.lr is not None]
    if rates and rates[-1] > WARMING * rates[len(rates) // 2] and rates[-1] >= 0.99 * max(rates):
        return True
    losses = np.array([step.loss for step in steps if step.loss is not None])
    quarter = len(losses) // 4
    if quarter == 0:
        return True
    before, last = losses[-2 * quarter : -quarter], losses[-quarter:]
    fall = float(before.mean() - last.mean())
    error = float(np.sqrt((before.var() + last.var()) / max(len(last), 1)))
    return fall > ERRORS * error and fall > FALLS * abs(float(before.mean()))


def _evidence(looks: list[Predictions], steps: list[Step]) -> Evidence:
    named: Counter[int] = Counter()
    for look in looks:
        named.update(look.predicted)
    targets, samples = _sum(looks), sum(look.samples for look in looks)
    top, count = named.most_common(1)[0]
    accuracy = sum(look.right for look in looks) / samples
    which = f"class {top}" if count >= ALMOST_ALL * samples else "one class at a time, another one now and then,"
    return Evidence(
        where=f"class {top}" if count >= ALMOST_ALL * samples else None,
        location=looks[-1].location,
        summary=f"the model names {which} for {count / samples:.0%} of {samples} samples since step {looks[0].step}, where "
        f"{targets[top] / samples:.0%} of the targets are {top} among {len(targets)} classes: accuracy {accuracy:.2f}",
        numbers={"class": top, "named": count / samples, "share": targets[top] / samples, "accuracy": accuracy},
        series=(
            Series("accuracy", tuple(float(look.step) for look in looks), tuple(look.right / look.samples for look in looks)),
        ),
        first_step=looks[0].step,
        last_step=looks[-1].step,
        strength=count / max(targets[top], 1),
    )


def _misled(looks: list[Predictions], accuracy: float) -> Evidence:
    (named,) = {label for look in looks for label in look.predicted}
    targets, samples = _sum(looks), sum(look.samples for look in looks)
    others = samples - targets[named]
    return Evidence(
        where=f"class {named}",
        location=looks[-1].location,
        summary=f"the accuracy of {accuracy:.3g} is the share of class {named}: since step {looks[0].step} the model names no "
        f"other class for {samples} samples, {others} of which are of another",
        numbers={"class": named, "named": 1.0, "share": targets[named] / samples, "accuracy": accuracy},
        fix="Weigh the rare class (weight= or pos_weight= of the loss) or lower the threshold from which it is named, and go by "
        "recall, average precision or the balanced accuracy; if they stay at chance, the inputs do not tell the classes apart.",
        confidence=Confidence.POSSIBLE,
        first_step=looks[0].step,
        last_step=looks[-1].step,
        strength=samples / max(targets[named], 1),
    )
