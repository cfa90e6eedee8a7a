"""Layers or parameters that the model holds where its framework does not look."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Stray
from sleuth.core.stage import Confidence, Severity, Stage

CURES = {
    "list": "Wrap the list: self.{name} = nn.ModuleList([...]) (nn.ParameterList for plain parameters).",
    "tuple": "Wrap the tuple: self.{name} = nn.ModuleList([...]) (nn.ParameterList for plain parameters).",
    "set": "Keep them in a module list: self.{name} = nn.ModuleList([...]).",
    "dict": "Wrap the dict: self.{name} = nn.ModuleDict({{...}}) (nn.ParameterDict for plain parameters).",
    "tensor": "Register it: self.{name} = nn.Parameter(...).",
}


@check(
    code="M217",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Architecture,),
    explains=(
        "parameters-not-optimised",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "loss-not-decreasing",
        "weights-do-not-change",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "capacity-mismatch",
        "capacity-too-small",
        "underfitting",
        "learns-without-input",
    ),
    title="The model does not know some of its own layers",
    why="""Layers in a plain list, dict or object are not registered: parameters() leaves them out, so the optimiser never updates
    them, .to(device) does not move them and state_dict() does not save them.""",
    fix="Keep layers in nn.ModuleList or nn.ModuleDict and tensors in nn.Parameter.",
)
def unregistered_layers(seen: Seen) -> Iterator[Evidence | NotExamined]:
    strays = seen.one(Architecture).strays
    if strays is None:
        yield NotExamined("this framework was not searched for layers outside the model")
        return
    for stray in strays:
        yield Evidence(
            where=stray.path,
            location=stray.location,
            summary=f"{stray.path} is a plain {_word(stray)} with {stray.parameters:,} trainable numbers that the model and the "
            "optimiser do not know",
            numbers={"parameters": stray.parameters, "holder": stray.holder},
            # An object may hold another model on purpose, such as one that a second optimiser trains.
            confidence=Confidence.LIKELY if stray.holder == "object" else None,
            fix=CURES.get(stray.holder, "").format(name=stray.path.rpartition(".")[2]) or None,
            strength=float(stray.parameters),
        )


def _word(stray: Stray) -> str:
    return "Python object" if stray.holder == "object" else stray.holder
