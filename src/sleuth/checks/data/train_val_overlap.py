"""Validation samples stand in the training set."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Alike, Matches, Overlap, Resemblance

# A model can answer by heart what it was trained on: with this share of such samples the measured error may be 5 %
# too small, as much as the differences by which people choose between models.
ERROR_SHARE = 0.05
# Well-kept benchmarks hold up to 1 % of duplicates across their splits (Barz and Denzler 2020 count near ones too).
WARNING_SHARE = 0.01
# Fewer equals than this may be a slip of the pen, whatever their share of a tiny validation set.
FEWEST = 3
# Where this share of samples meets an equal by nature, as in a table of three yes/no columns, equality tells nothing.
NATURAL = 0.5
# Odds against the excess over the natural rate being chance; the natural rate itself is taken at its upper bound.
CHANCE = 1e-4
# Nothing is impossible: data sets hold a slip here and there.
LEAST_NATURAL = 0.002
# 0: near-duplicates are not looked for. 0.1 counts samples as such that differ by a tenth of what is usual between two, in
# squared distance (of token sequences: by about a tenth of their words): images encoded anew, brightened or cropped by
# a little, rows with some noise, a sentence with another word in it.
NEAR = 0.0
# 99 % one-sided.
Z = 2.33


@check(
    code="D110",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    reads=(Overlap,),
    explains=("validation-too-good",),
    title="Validation samples stand in the training set",
    why="""Validation measures how the model does on what it has not seen. A sample that was trained on can be
    answered by heart, so the result looks better than the model is, and overfitting stays hidden.""",
    fix="""Split before anything is copied, oversampled or augmented, and by person, document or recording where one gives
    several samples. To drop the equals: seen = {x.tobytes() for x in x_train}; keep = [x.tobytes() not in seen for x in x_val];
    x_val, y_val = x_val[keep], y_val[keep].""",
    decided_by="fingerprints of the validation samples against those of training",
    symptoms=(
        "validation accuracy too good to be true",
        "validation accuracy is 100 %",
        "data leak between train and test",
        "good in validation, bad in production",
    ),
)
def train_val_overlap(
    seen: Seen, *, error_share: float = ERROR_SHARE, warning_share: float = WARNING_SHARE, near: float = NEAR
) -> Iterator[Evidence | NotExamined]:
    overlap = seen.one(Overlap)
    found = seen.maybe(Resemblance)
    alike = found.across if found is not None and near > 0 else None
    for matches, exact in ((overlap.exact, True), (overlap.rounded, False)):
        natural = max(natural_rate(matches, overlap), 0.0 if exact else _neighbours(overlap))
        if natural <= NATURAL and _stands_out(matches, natural) and _excess(matches, natural, overlap) >= warning_share:
            yield _evidence(overlap, matches, natural, exact, error_share, alike)
            return
    if alike is not None and alike.found >= FEWEST and alike.share >= warning_share:
        yield _near(alike, error_share)
    elif alike is not None and alike.natural_share >= warning_share:
        yield NotExamined(f"at near = {near:g} samples resemble each other by nature; set a smaller one to find copies")
    elif near > 0 and alike is None:
        yield NotExamined("near-duplicates were asked for, but samples could not be compared in the time")
    elif natural_rate(overlap.exact, overlap) > NATURAL:
        repeated = overlap.exact.train_repeated / overlap.train_samples
        yield NotExamined(
            f"equal inputs are natural here: {repeated:.0%} of the training samples have an equal within training, "
            "so an equal in validation tells nothing"
        )
    elif not overlap.complete:
        yield NotExamined(
            f"only a part of the data was read: {overlap.validation_samples} validation and {overlap.train_samples} training "
            "samples hold no suspicious equals"
        )


def natural_rate(matches: Matches, overlap: Overlap) -> float:
    """How many of a hundred new samples would meet an equal in training by nature: an upper bound.

    Three bounds, the lowest counts. A new sample meets its equal as often as a training sample meets one among the others;
    and it meets one among n samples at most n/m times as often as among m, so that repeats which only training holds
    (oversampling) do not hide a leak. But copies made before the split raise both: then near misses tell, as equals
    that come about by nature have neighbours that nearly do.
    """
    in_train = _upper(matches.train_repeated, overlap.train_samples)
    others = max(overlap.validation_samples - 1, 1)
    in_validation = _upper(matches.validation_repeated, overlap.validation_samples)
    by_repeats = min(in_train, in_validation * max(1.0, overlap.train_samples / others))
    return min(by_repeats, max(overlap.coincidence, LEAST_NATURAL))


def _neighbours(overlap: Overlap) -> float:
    """Training samples that nearly equal another one, and are no copies of it: points on a line lie that close by nature."""
    return _upper(max(0, overlap.rounded.train_repeated - overlap.exact.train_repeated), overlap.train_samples)


def _upper(count: int, total: int) -> float:
    """The upper end of Wilson's interval."""
    share, square = count / total, Z**2 / total
    spread = Z * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return min(1.0, (share + square / 2 + spread) / (1 + square))


def _stands_out(matches: Matches, natural: float) -> bool:
    """Chernoff's bound on meeting so many equals at the natural rate."""
    share = matches.distinct_found / matches.distinct
    if matches.distinct_found < FEWEST or share <= natural:
        return False
    divergence = share * math.log(share / natural)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - natural))
    return math.exp(-matches.distinct * divergence) < CHANCE


def _excess(matches: Matches, natural: float, overlap: Overlap) -> float:
    share = min(matches.found / overlap.validation_samples, matches.distinct_found / matches.distinct)
    repeated = min(natural, matches.train_repeated / overlap.train_samples)
    return max(0.0, (share - repeated) / (1 - repeated))


def _near(alike: Alike, error_share: float) -> Evidence:
    return Evidence(
        summary=_resembling(alike),
        where="validation",
        fix="Look at the pairs that are named; split by person, document or recording, so that both fall on the same side.",
        numbers=alike.numbers(),
        severity=Severity.ERROR if alike.share >= error_share else Severity.WARNING,
        strength=alike.share / error_share,
    )


def _resembling(alike: Alike) -> str:
    pairs = ", ".join(f"validation {i} resembles {j} of training (difference {d:.2g})" for i, j, d in alike.examples[:3])
    return (
        f"{alike.found} of {alike.asked} validation samples that were compared with all {alike.others} of training "
        f"({alike.share:.0%}) have a near-duplicate there, counted as they are read: {pairs}"
    )


def _evidence(
    overlap: Overlap, matches: Matches, natural: float, exact: bool, error_share: float, alike: Alike | None
) -> Evidence:
    excess = _excess(matches, natural, overlap)
    share = matches.found / overlap.validation_samples
    how = "" if exact else " up to float noise"
    pairs = ", ".join(f"{v} = {t}" for v, t in overlap.examples[:3])
    text = (
        f"{matches.found} of {overlap.validation_samples} validation samples ({share:.0%}) stand in the training set{how}, "
        f"counted as they are read: validation {pairs} of training"
    )
    if not overlap.complete:
        text += "; these are not all samples there are"
    if alike is not None and alike.found:
        text += f". Beside these, {_resembling(alike)}"
    return Evidence(
        summary=text,
        where="validation",
        numbers={
            "found": matches.found,
            "share": share,
            "exact": overlap.exact.found,
            "rounded": overlap.rounded.found,
            "natural_share": natural,
            "validation_samples": overlap.validation_samples,
            "train_samples": overlap.train_samples,
            **(alike.numbers() if alike is not None else {}),
        },
        severity=Severity.ERROR if excess >= error_share else Severity.WARNING,
        confidence=Confidence.CERTAIN if exact else Confidence.LIKELY,
        strength=excess / error_share,
    )
