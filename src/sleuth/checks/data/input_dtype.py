"""Integers, uint8 or float64 where the model computes in float32."""

import re
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, ArrayFacts, Batch, Failure, Role, Settings, Split
from sleuth.core.stage import Confidence, Severity, Stage

# How frameworks say that two dtypes do not go together, or that an operation does not exist for one.
SPEAKS_OF_DTYPES = re.compile(r"dtype|datatype|scalar type|Input type \(|not implemented for '|data type", re.IGNORECASE)


@check(
    code="D103",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Batch, Architecture, Settings, (Role.ACTIVATION, Failure)),
    explains=("forward-fails", "input-not-normalised", "channels-misplaced"),
    title="Inputs have another dtype than the model computes in",
    why="""A layer multiplies its inputs with its weights, and both must have the same dtype. NumPy makes float64, image files
    give uint8 and tables of counts give integers, while the weights are float32.""",
    fix="Convert where the data is made: x = x.astype(np.float32), or torch.as_tensor(x, dtype=torch.float32).",
    decided_by="the dtypes of the inputs against those of the weights",
    symptoms=(
        "expected scalar type Float but found Double",
        "mat1 and mat2 must have the same dtype",
        "input type (torch.cuda.ByteTensor) and weight type should be the same",
        "expected Long or Int but got Float for embedding indices",
        "uint8 images fed to the model",
    ),
)
def input_dtype(seen: Seen) -> Iterator[Evidence | NotExamined]:
    failure = next((f for f in seen.all(Failure) if f.phase == "forward"), None)
    if failure is None:
        # The forward pass went well: whatever the dtypes are, the model converts them.
        return
    if failure.kind != "dtype" and (failure.kind != "other" or not SPEAKS_OF_DTYPES.search(failure.message)):
        yield NotExamined(f"the forward pass fails before dtypes matter: {failure.error}")
        return
    inputs = next(b.inputs for b in seen.batches(Split.TRAIN))
    wanted = seen.one(Settings).parameter_dtype or "float32"
    ids = _at_an_embedding(failure, seen.one(Architecture))
    accused = _accused(inputs, wanted, ids, seen.one(Architecture).has("embedding"))
    if accused is None:
        yield NotExamined("the forward pass fails over dtypes that are not those of the inputs")
        return
    need = "int64" if ids else wanted
    yield Evidence(
        where=accused.path,
        location=failure.location,
        summary=f"{_name(accused)} is {accused.dtype}, "
        + (f"the embedding {failure.layer} needs int64" if ids else f"the model computes in {wanted}")
        + (f"; layer {failure.layer} refuses it" if failure.layer and not ids else ""),
        numbers={"dtype": accused.dtype, "needed": need},
        fix=_fix(accused, need),
    )


def _at_an_embedding(failure: Failure, architecture: Architecture) -> bool:
    layer = next((x for x in architecture.layers if x.path == failure.layer), None)
    return layer is not None and layer.family == "embedding"


def _accused(inputs: tuple[ArrayFacts, ...], wanted: str, ids: bool, has_embedding: bool) -> ArrayFacts | None:
    """The input that does not fit. Masks, lengths and positions beside a float input are as they should be."""
    if ids:
        return next((x for x in inputs if x.dtype not in ("int64", "int32")), None)
    floats = [x for x in inputs if x.is_float and x.dtype != wanted]
    pixels = [x for x in inputs if x.dtype == "uint8"]
    if floats or pixels:
        return (floats + pixels)[0]
    alone = len(inputs) == 1 and not inputs[0].is_float and not has_embedding
    return inputs[0] if alone else None


def _name(accused: ArrayFacts) -> str:
    return "the input" if accused.path == "input" else f"the input {accused.path}"


def _fix(accused: ArrayFacts, need: str) -> str:
    if need.startswith("int"):
        return "Give whole numbers: x = x.long(), or np.asarray(x, dtype=np.int64) where the data is made."
    if accused.dtype == "uint8" and accused.statistics.max > 1:
        return f"Convert and scale where the data is made: x = x.astype(np.{need}) / 255, or x.float() / 255."
    return f"Convert where the data is made: x = x.astype(np.{need}), or x = x.to(torch.{need})."
