"""The model against the same one elsewhere."""

from collections.abc import Iterator

from sleuth.comparing.comparison import pair_of
from sleuth.comparing.result import UNKNOWN, Pair
from sleuth.comparing.side import CannotRun, neutral, opened
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Agreement
from sleuth.probes.lab.probe import Lab, probe

NONE = "no reference was given: examine(…, reference=the same model elsewhere)"


@probe(title="Comparing with the reference", stage=Stage.CONSISTENCY, emits=(Agreement,), needs=("forward",), share=0.2)
def against_reference(lab: Lab) -> Iterator[Observation]:
    if lab.reference is None:
        raise Unsupported(NONE)
    adapter, subject = lab.reference
    given = lab.batch
    batch = Parts(*(neutral(part, [lab.adapter, adapter]) for part in (given.inputs, given.target, given.raw)))
    name = subject.name or (adapter.name if adapter.name != lab.adapter.name else "the reference")
    try:
        with (
            opened(lab.adapter.name, lab.adapter, lab.subject, batch) as first,
            opened(name, adapter, subject, batch) as other,
        ):
            yield agreement(pair_of(first, other))
    except CannotRun as error:
        raise Unsupported(f"the reference cannot be run on a batch of the training: {error}") from None


def agreement(pair: Pair) -> Agreement:
    if pair.status == UNKNOWN:
        reason = f"weights could not be carried over: {'; '.join(pair.not_carried[:3])}"
        return Agreement(pair.other, len(pair.rows), unknown=reason)
    row = pair.parted
    if row is None:
        return Agreement(pair.other, len(pair.rows))
    return Agreement(
        pair.other,
        len(pair.rows),
        stage=row.stage,
        where=row.first,
        there=row.other,
        kind=row.kind,
        difference=row.difference,
        explained=row.explained,
        reason=pair.reasons[0].text if pair.reasons else None,
        tried=pair.tried,
    )
