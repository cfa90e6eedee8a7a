"""Some parameters have another dtype or sit on another device than the rest."""

from collections import defaultdict
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Parameter
from sleuth.core.stage import Confidence, Severity, Stage

# Norms and their like are kept in float32 beside half-precision weights on purpose.
KEPT_WIDE = ("norm", "batchnorm")


@check(
    code="M231",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Architecture,),
    explains=("forward-fails", "backward-fails", "input-dtype"),
    title="Parameters differ in dtype or device",
    why="""Operations between tensors of different dtype or device fail or silently convert at every step. A layer made
    from a NumPy array (float64), or one that was created after the model was moved, is the usual reason.""",
    fix="""Convert the whole model once, after it is complete: model.float() or model.to(device).""",
    decided_by="the dtype and device of each parameter",
    symptoms=(
        "Expected all tensors to be on the same device",
        "half and float parameters in one model",
        "expected scalar type Half but found Float",
        "some parameters are on the cpu",
    ),
)
def mixed_precision_parameters(seen: Seen) -> Iterator[Evidence | NotExamined]:
    parameters = seen.one(Architecture).parameters
    yield from _minority(parameters, "device")
    yield from _minority([p for p in parameters if p.family not in KEPT_WIDE and "float" in p.dtype], "dtype")


def _minority(parameters: list[Parameter] | tuple[Parameter, ...], attribute: str) -> Iterator[Evidence]:
    groups: dict[str, list[Parameter]] = defaultdict(list)
    for parameter in parameters:
        groups[getattr(parameter, attribute)].append(parameter)
    if len(groups) < 2:
        return
    usual = max(groups, key=lambda value: sum(p.size for p in groups[value]))
    odd = [p for value, group in groups.items() if value != usual for p in group]
    if attribute == "device" and len(odd) > len(parameters) // 4:
        return  # layers spread over devices in such numbers are model parallelism, not an oversight
    first = odd[0]
    yield Evidence(
        where=first.path,
        summary=f"{first.path} is {getattr(first, attribute)} while most parameters are {usual}"
        + (f" ({len(odd)} such parameters)" if len(odd) > 1 else ""),
        numbers={"odd": len(odd), "parameters": len(parameters)},
    )
