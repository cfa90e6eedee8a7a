"""What a reviewer must read, as text."""

from collections.abc import Iterable, Sequence

from tests.authoring.runs import Outcome


def section(title: str, lines: Iterable[str], nothing: str = "") -> None:
    """`nothing` is said where there are no lines; without it the section is left out."""
    found = list(lines) or ([nothing] if nothing else [])
    if found:
        print(f"\n{title}")
        print("\n".join(f"  {line}" for line in found), flush=True)


def matrix(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """A row a kit and variant: first culprit and its symptoms, or silence, or why there is nothing to say."""
    order = {kit: i for i, kit in enumerate(dict.fromkeys(o.run.kit for o in outcomes))}
    ordered = sorted(outcomes, key=lambda o: (order[o.run.kit], o.run.kind == "healthy"))
    return [f"{o.run.kit:8} {o.run.kind:8} {o.seconds:5.1f} s  {_said(name, o)}" for o in ordered]


def _said(name: str, outcome: Outcome) -> str:
    if outcome.cannot_build:
        return f"cannot be built: {outcome.cannot_build}"
    if outcome.error:
        return f"FAILED: {outcome.error}"
    looked = f"; {name} did not look: {outcome.not_examined}" if outcome.not_examined else ""
    if not outcome.culprits:
        return f"silent{looked}" if looked else f"silent, {name} looked"
    others = f"; beside it {', '.join(outcome.culprits[1:])}" if outcome.culprits[1:] else ""
    symptoms = f", symptoms: {', '.join(outcome.symptoms)}" if outcome.symptoms else ""
    said = f"\n{'':29}{name} says: {outcome.summary}" if outcome.summary else ""
    return f"first culprit {outcome.culprits[0]}{symptoms}{others}{looked}{said}"
