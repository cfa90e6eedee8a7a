"""A setting of the optimiser lies outside what works."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Settings, Step
from sleuth.core.reading.lines import optimiser_line
from sleuth.core.stage import Confidence, Severity, Stage

# An average over ten thousand steps and more hardly moves in a training; 0.9 to 0.999 are in use.
LONGEST_AVERAGE = 0.9999
# Next to an epsilon of one the gradients' own size no longer matters; 1e-8 to 0.1 are in use.
LARGEST_EPSILON = 1.0


@check(
    code="H507",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Settings,),
    explains=(
        "step-changes-nothing",
        "weights-do-not-change",
        "update-too-small",
        "update-too-large",
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-finite",
        "exploding-gradients",
        "weights-grow",
        "predicts-one-class",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "learns-without-input",
        "underfitting",
        "capacity-too-small",
    ),
    title="A setting of the optimiser cannot work",
    why="""A rate of zero changes nothing and a negative one climbs; averages that never forget do not follow the gradient.
    Such values mostly come from whole-number division, a swapped argument or a sign.""",
    fix="Set the learning rate above zero, momentum and betas below one, and epsilon between 1e-8 and 0.1.",
    decided_by="learning rate, momentum, betas and epsilon against what can work",
    symptoms=(
        "weights do not change",
        "learning rate is zero",
        "integer division makes the learning rate zero",
        "momentum above 1",
        "loss goes up from the first step",
        "negative learning rate",
        "betas of Adam swapped",
    ),
)
def optimiser_setting_odd(
    seen: Seen, *, longest_average: float = LONGEST_AVERAGE, largest_epsilon: float = LARGEST_EPSILON
) -> Iterator[Evidence | NotExamined]:
    settings = seen.one(Settings)
    if settings.optimiser is None:
        yield NotExamined("no optimiser was given")
        return
    place, options = optimiser_line(seen), settings.optimiser_options
    yield from _rate(settings, any(step.lr for step in seen.all(Step)), place)
    for name, value in _averages(options):
        if value > longest_average:
            yield Evidence(
                location=place,
                summary=f"{name} = {value:g}: the average over {_length(value)} steps hardly follows the gradient",
            )
    yield from _swapped(settings, place)
    epsilon = options.get("eps")
    if _is_number(epsilon) and epsilon > largest_epsilon:
        yield Evidence(location=place, summary=f"eps = {epsilon:g}: next to it the size of the gradients no longer counts")


def _rate(settings: Settings, raised: bool, place: Location | None) -> Iterator[Evidence | NotExamined]:
    """`raised`: some step was taken at another rate than zero; the loop sets it by hand."""
    lr, planned = settings.lr, settings.optimiser_options.get("initial_lr")
    if lr is None:
        return
    if lr < 0:
        yield Evidence(
            location=place,
            summary=f"the learning rate of {settings.optimiser} is {lr:g}: every step climbs",
            severity=Severity.ERROR,
            numbers={"lr": lr},
            fix=f"Set the learning rate to {-lr:g}.",
        )
    elif lr == 0 and _is_number(planned) and planned > 0:
        yield NotExamined(f"a schedule holds the learning rate at 0 for now and starts from {planned:g}")
    elif lr == 0 and not raised:
        yield Evidence(
            location=place,
            summary=f"the learning rate of {settings.optimiser} is 0: no step changes anything",
            severity=Severity.ERROR,
            numbers={"lr": lr},
            fix="Set the learning rate above zero, such as lr=1e-3; 1 // 10 is 0, 1 / 10 is 0.1.",
        )


def _averages(options: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    if _is_number(options.get("momentum")):
        yield "momentum", float(options["momentum"])
    betas = options.get("betas")
    if isinstance(betas, tuple | list):
        yield from ((f"betas[{i}]", float(beta)) for i, beta in enumerate(betas) if _is_number(beta))


def _swapped(settings: Settings, place: Location | None) -> Iterator[Evidence]:
    """Adam's authors ask for β₁² < √β₂ (Kingma and Ba, 2015, theorem 4.1)."""
    betas = settings.optimiser_options.get("betas")
    if not isinstance(betas, tuple | list) or len(betas) != 2 or not all(map(_is_number, betas)):
        return
    first, second = map(float, betas)
    if "adam" in (settings.optimiser or "").lower() and 0 < second < first < 1 and first**2 >= second**0.5:
        yield Evidence(
            location=place,
            summary=f"betas = ({first:g}, {second:g}): gradients are averaged over {_length(first)} steps, and their squares, by "
            f"which a step is divided, over {_length(second)}: a few small gradients make steps of any size",
            fix=f"Swap them: betas=({second:g}, {first:g}).",
        )


def _length(value: float) -> str:
    return f"{1 / (1 - value):.0f}" if value < 1 else "endlessly many"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
