"""Layers or parameters that the model holds where its framework does not look."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Stray
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Connection

CURES = {
    "list": "Wrap the list: self.{name} = nn.ModuleList([...]) (nn.ParameterList for plain parameters).",
    "tuple": "Wrap the tuple: self.{name} = nn.ModuleList([...]) (nn.ParameterList for plain parameters).",
    "set": "Keep them in a module list: self.{name} = nn.ModuleList([...]).",
    "dict": "Wrap the dict: self.{name} = nn.ModuleDict({{...}}) (nn.ParameterDict for plain parameters).",
    "tensor": "Register it: self.{name} = nn.Parameter(...).",
    "function": "Make the layer an attribute of its own, self.layer = ..., and call self.layer(x) in forward.",
    "object": "Make what self.{name} is an nn.Module too: class Holder(nn.Module), with super().__init__() first.",
}
ONCE = "Build the layer once, in __init__ (self.layer = nn.Linear(…)), and only call it in forward: self.layer(x)."
# What is said of parameters that were met at work, and what to do.
MADE = {
    "forward": (
        "forward of {where} makes {count} trainable numbers anew at every call: they start at random each time, and nothing "
        "learns them",
        ONCE,
    ),
    "forward, plain": (
        "forward of {where} makes {count} trainable numbers anew at every call: what they learn is thrown away each time",
        ONCE,
    ),
    "first call": (
        "{where}, with {count} trainable numbers, is registered at the first call of forward only: an optimiser that was made "
        "before does not hold it",
        "Build the layer in __init__, or run the model once on a batch before you make the optimiser.",
    ),
    "hidden": (
        "{where}, with {count} trainable numbers, stands between layers that are trained, but its name begins with an "
        "underscore: the model does not count it, and nothing trains it",
        "Give it a name without an underscore; or freeze() it, if it is meant to stay as it is.",
    ),
}
ELSEWHERE = (
    "forward of {where} uses {count} trainable numbers that the model and the optimiser do not know",
    "Make the layer an attribute of the module, self.layer = layer, and not a name of a function, class or file.",
)


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
    decided_by="the layers found in attributes against those the model lists",
    symptoms=(
        "model.parameters() misses layers",
        "parameters in a python list",
        "optimizer got an empty parameter list",
        "weights do not change in some layers",
        "layers not in state_dict",
        "layers stay on the cpu after model.cuda()",
    ),
)
def unregistered_layers(seen: Seen) -> Iterator[Evidence | NotExamined]:
    strays = seen.one(Architecture).strays
    connection = seen.maybe(Connection)
    strangers = connection.strangers if connection is not None else None
    if strays is None and strangers is None:
        yield NotExamined("this framework was not searched for layers outside the model")
        return
    at_work = [s for s in strangers or () if s.holder in MADE]
    if strangers is not None and not any(s.holder in ("elsewhere", "hidden") for s in strangers):
        # What no forward uses is another's: a critic, a network that a loss compares with.
        for stray in strays or ():
            yield NotExamined(f"{stray.path} holds layers that forward does not use; who trains them cannot be told")
    elif strays:
        yield from (_kept(stray) for stray in strays)
    else:
        at_work += [s for s in strangers or () if s.holder == "elsewhere"]
    yield from (_at_work(stranger) for stranger in at_work)


def _kept(stray: Stray) -> Evidence:
    return Evidence(
        where=stray.path,
        location=stray.location,
        summary=f"{stray.path} is a plain {_word(stray)} with {stray.parameters:,} trainable numbers that the model and the "
        "optimiser do not know",
        numbers={"parameters": stray.parameters, "holder": stray.holder},
        # An object may hold another model on purpose, such as one that a second optimiser trains.
        confidence=Confidence.LIKELY if stray.holder in ("object", "function") else None,
        fix=CURES.get(stray.holder, "").format(name=stray.path.rpartition(".")[2]) or None,
        strength=float(stray.parameters),
    )


def _at_work(stranger: Stray) -> Evidence:
    how, fix = MADE.get(stranger.holder, ELSEWHERE)
    return Evidence(
        where=stranger.path or None,
        location=stranger.location,
        summary=how.format(where=stranger.path or "the model", count=f"{stranger.parameters:,}"),
        numbers={"parameters": stranger.parameters, "holder": stranger.holder},
        severity=Severity.WARNING if stranger.holder == "forward, plain" else None,
        confidence=Confidence.LIKELY if stranger.holder in ("elsewhere", "hidden") else None,
        fix=fix,
        strength=float(stranger.parameters),
    )


def _word(stray: Stray) -> str:
    return {"object": "Python object", "function": "Python function"}.get(stray.holder, stray.holder)
