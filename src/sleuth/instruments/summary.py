"""The parts of a model: shapes, parameters, operations, time."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sleuth.core.contract.inspection import Door, Part, Passage, Visit
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Failure
from sleuth.instruments.given import Given
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed


@dataclass(frozen=True)
class Row:
    """One part. Parameters, FLOPs and time include those of the parts inside; what is shared counts where it comes first."""

    path: str
    kind: str
    depth: int
    inputs: tuple[Door, ...] = ()
    outputs: tuple[Door, ...] = ()
    kernel: tuple[int, ...] | None = None
    shapes: dict[str, tuple[int, ...]] | None = None  # of its own parameters
    parameters: int = 0
    trainable: int = 0
    flops: int | None = None
    seconds: float | None = None
    calls: int = 0
    note: str = ""


@dataclass(frozen=True)
class Summary(Viewed):
    name: str
    rows: tuple[Row, ...]
    parameters: int
    trainable: int
    flops: int | None  # of one forward pass; None: not counted
    seconds: float | None  # of one forward pass; None: not measured
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    depth: int | None = None  # how deep the tree is shown; the numbers go all the way

    @property
    def frozen(self) -> int:
        return self.parameters - self.trainable

    @property
    def shown(self) -> tuple[Row, ...]:
        return tuple(r for r in self.rows if self.depth is None or r.depth <= self.depth)

    def row(self, path: str) -> Row:
        found = next((r for r in self.rows if r.path == path), None)
        if found is None:
            raise UnusableInput(f"there is no layer {path!r} in {self.name}.")
        return found

    def share_of_time(self, row: Row) -> float | None:
        return row.seconds / self.seconds if self.seconds and row.seconds is not None else None

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def summary(
    model: Any,
    inputs: Any = None,
    *,
    dtype: str | None = None,
    time: bool = False,
    depth: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """The tree of a model: kinds, shapes in and out, kernels, parameters, FLOPs; with `time=True` each part's share of the time.

    `inputs`: arrays, a shape such as `(32, 3, 64, 64)`, a mapping or tuple of either, or a loader; without them there are no
    shapes, FLOPs or times. `dtype` is that of inputs made from a shape, such as "int64" for ids. One forward pass runs on a
    copy, in eval mode.
    """
    from sleuth.views import progress as progress_view

    given = Given(model, inputs, dtype)
    parts = given.inspects.parts(given.model)
    passed = None
    if given.inputs is not None:
        with progress_view.shown(progress) as tell:
            tell("Measuring a forward pass" if time else "Running the model once")
            passed = given.inspects.passage(given.model, given.inputs, time=time)
    root = passed.visits[0] if passed is not None and passed.visits else None
    done = passed is not None and passed.failure is None
    return Summary(
        name=given.name,
        rows=_rows(parts, passed),
        parameters=sum(p.count for p in parts),
        trainable=sum(p.trainable for p in parts),
        flops=root.flops if root is not None and done and passed is not None and passed.flops_counted else None,
        seconds=root.seconds if root is not None and done else None,
        failure=passed.failure if passed is not None else None,
        notes=tuple(_notes(parts, passed, given)),
        depth=depth,
    )


def _rows(parts: tuple[Part, ...], passed: Passage | None) -> tuple[Row, ...]:
    calls: dict[str, list[Visit]] = defaultdict(list)
    for visit in passed.visits if passed is not None else ():
        calls[visit.path].append(visit)
    return tuple(_row(part, parts, calls, passed) for part in parts)


def _row(part: Part, parts: tuple[Part, ...], calls: dict[str, list[Visit]], passed: Passage | None) -> Row:
    inside = [p for p in parts if not part.path or p.path == part.path or p.path.startswith(f"{part.path}.")]
    visits = calls.get(part.path, [])
    times = [v.seconds for v in visits if v.seconds is not None]
    kernel = part.settings.get("kernel")
    return Row(
        path=part.path,
        kind=part.kind,
        depth=part.path.count(".") + 1 if part.path else 0,
        inputs=visits[0].inputs if visits else (),
        outputs=visits[0].outputs if visits else (),
        kernel=None if kernel is None else tuple(kernel) if isinstance(kernel, tuple | list) else (kernel,),
        shapes=dict(part.parameters),
        parameters=sum(p.count for p in inside),
        trainable=sum(p.trainable for p in inside),
        flops=sum(v.flops for v in visits) if passed is not None and passed.flops_counted else None,
        seconds=sum(times) if times else None,
        calls=len(visits),
        note=_note(part, visits, passed, parts),
    )


def _note(part: Part, visits: list[Visit], passed: Passage | None, parts: tuple[Part, ...]) -> str:
    if part.same_as is not None:
        return f"same as {part.same_as}"
    if part.tied:
        return "; ".join(f"{name} is {other}" for name, other in part.tied.items())
    if part.lazy:
        return "lazy: no shape before the first call"
    if len(visits) > 1:
        return f"called {len(visits)} times"
    if passed is None or passed.failure is not None or visits or not part.parameters:
        return ""
    holder = next((p for p in parts if p.path == part.path.rpartition(".")[0]), None)
    # MultiheadAttention reads the weights of its part without calling it.
    return "" if holder is not None and holder.family == "attention" else "not called"


def _notes(parts: tuple[Part, ...], passed: Passage | None, given: Given) -> list[str]:
    if passed is None:
        return ["without inputs there are no shapes and no FLOPs: sleuth.summary(model, (32, 3, 64, 64))"]
    found = []
    if given.made and passed.failure is not None and passed.failure.kind == "dtype":
        found.append('an input that is made from a shape holds floats; for ids give dtype="int64"')
    if not passed.flops_counted and passed.failure is None:
        found.append("FLOPs could not be counted for this model")
    if any(p.lazy for p in parts):
        found.append("lazy layers have no parameters before the model's first call: these are not counted")
    return found
