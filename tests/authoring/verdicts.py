"""What is wrong with the outcomes of a check, and what in them its author should think about."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.authoring.runs import Outcome
from tests.feeding import LEAST
from tests.golden_tables import agree


def own_faults(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Why tests/test_cases.py would fail for the case of this check."""
    if all(outcome.cannot_build for outcome in outcomes):
        yield f"no kit can build the case: {outcomes[0].cannot_build}"
    for outcome in outcomes:
        if outcome.error or outcome.raised:
            yield f"{outcome.run}: {outcome.error or outcome.raised}"
        elif not outcome.cannot_build and (
            fault := (_sick_fault if outcome.run.kind == "sick" else _healthy_fault)(name, outcome)
        ):
            yield f"{outcome.run}: {fault}"


def _sick_fault(name: str, outcome: Outcome) -> str:
    if outcome.culprits[:1] == (name,):
        return ""
    if name not in outcome.findings:
        said = outcome.not_examined or "it looked and found nothing"
        return f"{name} does not speak: {said}" + (f" (first culprit: {outcome.culprits[0]})" if outcome.culprits else "")
    first = outcome.culprits[0]
    if name in outcome.symptoms:
        return f"{first} comes first and explains {name}: the sick training has that illness too, or the two are one"
    return f"{first} comes first: if that is a consequence, name it in `explains`; if not, the sick training has two illnesses"


def _healthy_fault(name: str, outcome: Outcome) -> str:
    if outcome.findings:
        return f"it is not healthy under every check: {', '.join(outcome.findings)}"
    return f"{name} did not look: {outcome.not_examined}" if outcome.not_examined else ""


def other_faults(name: str, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Healthy trainings that the check accuses, or in which it raises; models of the zoo that too few checks can look at."""
    for outcome in outcomes:
        if outcome.raised:
            yield f"{outcome.run}: {outcome.raised}"
        elif outcome.run.kind != "sick" and name in outcome.findings:
            yield f"{outcome.run} is well and is accused: {outcome.summary}"
        elif outcome.share and outcome.share[0] < LEAST * outcome.share[1] and outcome.not_examined:
            yield (
                f"{outcome.run}: {outcome.share[0]} of {outcome.share[1]} checks were examined, and {name} was not "
                f"({outcome.not_examined}): say in tests/feeding.py what it needs, if this model lacks that"
            )


def broken_others(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Trainings that broke by themselves: nothing that a check could do."""
    return (f"{outcome.run}: {outcome.error}" for outcome in outcomes if outcome.error)


def sick_others(name: str, outcomes: Iterable[Outcome], golden: Mapping[str, str]) -> Iterator[str]:
    """Other illnesses in whose sick case the check speaks, and what that makes of their golden rows."""
    for outcome in sorted(outcomes, key=lambda o: o.run.name):
        if outcome.run.kind != "sick" or name not in outcome.findings:
            continue
        case, was = outcome.run.name, golden.get(outcome.run.name, "")
        role = "is put down to its culprit" if name not in outcome.culprits else "is a culprit of its own"
        yield f"{case}: {name} speaks and {role}: {outcome.summary}"
        if outcome.culprits[0] != case:
            yield f"    WRONG: {outcome.culprits[0]} comes before {case} now, and tests/test_cases.py fails"
        elif not agree(outcome.row, was):
            yield f"    its golden row was {was!r} and is {outcome.row!r} now"
        if name in outcome.culprits and outcome.culprits[0] == case:
            yield f"    if it is a consequence of {case}, add it to that check's `explains`"


def beside(name: str, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Second culprits of the sick case: edges that `explains` may lack."""
    kits = defaultdict(list)
    for outcome in outcomes:
        if outcome.run.kind == "sick":
            for other in outcome.culprits[1:]:
                kits[other].append(outcome.run.kit)
    for other, where in kits.items():
        yield f"{other} is a second culprit of the sick case ({', '.join(where)}): if {name} causes it, add it to `explains`"
