"""An id is larger than the embedding has rows."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, ArrayFacts, Batch, Failure, Layer, OutOfRange, Split
from sleuth.core.reading.lines import beside
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="D117",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Architecture, OutOfRange), (Batch, OutOfRange)),
    explains=("forward-fails", "output-not-finite", "loss-not-finite"),
    title="A token id has no row in the embedding",
    why="""An embedding is a table with one row an id, counted from zero. An id at or beyond its end reads outside
    the table: an index error on a CPU, a cryptic assertion on a GPU.""",
    fix="""Build the embedding with one row more than the largest id, or map unknown ids to a token that the
    vocabulary has.""",
    decided_by="the largest id against the rows of the embedding",
    symptoms=(
        "IndexError: index out of range in self",
        "token id larger than the vocabulary",
        "embedding index out of range",
        "device-side assert triggered in embedding",
        "Assertion `srcIndex < srcSelectDimSize` failed",
    ),
)
def token_out_of_vocabulary(seen: Seen) -> Iterator[Evidence | NotExamined]:
    asked = [o for o in seen.all(OutOfRange) if o.kind in ("embedding", "position")]
    if asked:  # the very call that raised was read
        yield from (_refused(o) for o in asked if o.kind == "embedding")
        return
    architecture = seen.maybe(Architecture)
    if architecture is None:
        yield NotExamined("the model was not described")
        return
    tables = {layer.path: layer for layer in architecture.layers if layer.family == "embedding"}
    ids = _widest(seen)
    if not tables and not ids:
        return  # nothing is looked up
    if not tables or not ids:
        yield NotExamined("no integer ids are fed to an embedding")
        return
    broken = [f for f in seen.all(Failure) if f.phase == "forward" and f.layer in tables]
    if broken:
        yield from _outside(tables[str(broken[0].layer)], list(ids.values()), broken[0])
    elif len(tables) == 1 and len(ids) == 1:
        # With several tables or inputs the ids of one may rightly exceed the rows of another.
        yield from _outside(next(iter(tables.values())), list(ids.values()), None)


def _refused(asked: OutOfRange) -> Evidence:
    rows, ids = asked.size, asked.index or "what it is given"
    many = f" ({asked.outside:,} of {asked.asked:,} ids are outside)" if asked.outside > 1 else ""
    return Evidence(
        where=asked.table,
        location=asked.location,
        summary=f"{asked.table} has {rows} rows (ids 0 to {rows - 1}), but {ids}{beside(asked.location, asked.raised)} holds "
        f"the id {asked.wrong}{many}",
        fix=f"Make the embedding {asked.highest + 1} rows long, or keep every id below {rows}." if asked.lowest >= 0 else None,
        numbers={"rows": rows, "smallest_id": asked.lowest, "largest_id": asked.highest},
        strength=2.0,
    )


def _widest(seen: Seen) -> dict[str, ArrayFacts]:
    """For each integer input the batch with the largest id (or a negative one)."""
    widest: dict[str, ArrayFacts] = {}
    for batch in (*seen.batches(Split.TRAIN), *seen.batches(Split.VALIDATION)):
        for facts in batch.inputs:
            if "int" not in facts.dtype:
                continue
            before = widest.get(facts.path)
            if before is None or _reach(facts) > _reach(before):
                widest[facts.path] = facts
    return widest


def _reach(facts: ArrayFacts) -> float:
    return max(facts.statistics.max, -facts.statistics.min * 1e9)


def _outside(table: Layer, ids: list[ArrayFacts], failure: Failure | None) -> Iterator[Evidence]:
    rows = int(table.settings["in"])
    for facts in ids:
        low, high = int(facts.statistics.min), int(facts.statistics.max)
        if low >= 0 and high < rows:
            continue
        wrong = low if low < 0 else high
        yield Evidence(
            where=table.path,
            location=failure.location if failure else None,
            summary=f"{table.path} has {rows} rows (ids 0 to {rows - 1}), but {facts.path} holds the id {wrong}",
            fix=f"Make the embedding {high + 1} rows long, or keep every id below {rows}." if low >= 0 else None,
            numbers={"rows": rows, "smallest_id": low, "largest_id": high},
            strength=2.0 if failure else 1.0,
        )
