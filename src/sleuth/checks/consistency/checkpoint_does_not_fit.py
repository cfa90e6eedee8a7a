"""A checkpoint is refused: names or shapes differ from the model's."""

from collections.abc import Iterator

from sleuth.checks.evidence.checkpoint_mismatch import reasons
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Crash, Ending, Misfit
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.words import counted

# More reasons than these are a list, not an answer.
TOLD = 3
# Of names, for who reads the numbers.
LISTED = 100


@check(
    code="C707",
    stage=Stage.CONSISTENCY,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Misfit, Ending, Crash),),
    title="The checkpoint does not fit the model",
    why="""A checkpoint is a table of tensors by name. It goes into a model that has the same names and shapes; wrappers put a
    prefix before every name, and a layer that was renamed, added or made wider since is not found or not accepted.""",
    fix="""Compare the names and shapes of both, model.state_dict().keys() and the checkpoint's, and build the model as it was
    when it was saved.""",
    decided_by="the names and shapes in the checkpoint against those of the model, when load_state_dict refused it",
    symptoms=(
        "Error(s) in loading state_dict",
        "load_state_dict fails",
        "Missing key(s) in state_dict",
        "Unexpected key(s) in state_dict",
        "size mismatch for weight: copying a param with shape from checkpoint",
        "cannot load the checkpoint",
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        "Weights only load failed",
        "Attempting to deserialize object on a CUDA device",
    ),
)
def checkpoint_does_not_fit(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for misfit in seen.all(Misfit):
        yield EXPLAINED[misfit.kind](misfit)


def _names(misfit: Misfit) -> Evidence:
    found = reasons(misfit)
    fits = f"{counted(misfit.fitting, 'tensor')} fit, and " if misfit.fitting else ""
    told = "; ".join(r.what for r in found[:TOLD]) or "it was refused"
    return _evidence(
        misfit,
        f"{misfit.into} refuses the checkpoint: {fits}{told}",
        f"{found[0].fix}." if found else None,
        missing=[e.name for e in misfit.missing[:LISTED]],
        unexpected=[e.name for e in misfit.unexpected[:LISTED]],
        other_shapes=[one.name for one, _ in misfit.reshaped[:LISTED]],
        reason=found[0].kind if found else None,
    )


def _nested(misfit: Misfit) -> Evidence:
    return _evidence(
        misfit,
        f"{misfit.into} was given the whole checkpoint ({misfit.got}); its own state lies inside, under {misfit.key!r}",
        f"Hand over that part: {misfit.owner}.load_state_dict({misfit.state}[{misfit.key!r}]).",
    )


def _object(misfit: Misfit) -> Evidence:
    return _evidence(
        misfit,
        f"{misfit.into} was given {misfit.got} instead of a table of tensors by name",
        f"Hand over its state, {misfit.owner}.load_state_dict({misfit.state}.state_dict()), or use the object itself.",
    )


def _optimiser(misfit: Misfit) -> Evidence:
    return _evidence(
        misfit,
        f"the state of {misfit.into} belongs to other parameters: {misfit.got}",
        "Build the optimiser over the same parameters, in the same groups, as when it was saved (parts that were frozen or "
        "added since change them); or let it start anew and load the model alone.",
    )


def _unreadable(misfit: Misfit) -> Evidence:
    advice = misfit.advice
    return _evidence(
        misfit,
        f"the checkpoint cannot be read: it holds {misfit.got}"
        if not misfit.got.startswith("a file")
        else f"the checkpoint cannot be read: it is {misfit.got}",
        None if advice is None else f"{advice[0].upper()}{advice[1:]}.",
    )


EXPLAINED = {"names": _names, "nested": _nested, "object": _object, "optimiser": _optimiser, "unreadable": _unreadable}


def _evidence(misfit: Misfit, summary: str, fix: str | None, **numbers: object) -> Evidence:
    return Evidence(summary=summary, where=misfit.into, location=misfit.location, fix=fix, numbers=numbers)
