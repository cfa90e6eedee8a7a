"""Training and evaluation mode give very different outputs for the same batch."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Batch
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import ModeAgreement

# In units of the outputs' spread and the noise of dropout together. Batch statistics of 32 samples move outputs by about 0.3.
FAR = 1.5
# With fewer samples batch statistics are so noisy that the modes must differ.
LEAST_SAMPLES = 8


@check(
    code="M229",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(ModeAgreement, Architecture),
    explains=("validation-too-good", "overfitting"),
    title="Training and evaluation mode disagree",
    why="""The same samples give other answers once model.eval() is called, by more than dropout explains: running statistics that
    do not follow the data, or code that does something else when self.training is set. What was trained is not what is used.""",
    fix="""Make both modes compute the same: update running statistics in training (momentum around 0.1), scale a hand-written
    dropout by 1/(1-p), and look at every `if self.training`.""",
    decided_by="the same batch in training and in evaluation mode",
    symptoms=(
        "validation worse than training",
        "accuracy drops in eval mode",
        "good in train mode, bad after model.eval()",
        "predictions differ between train and eval",
        "val loss goes up while training loss falls",
        "looks like overfitting",
    ),
)
def train_eval_disagree(seen: Seen, *, far: float = FAR) -> Iterator[Evidence | NotExamined]:
    found = seen.one(ModeAgreement)
    sizes = [b.size for b in seen.all(Batch)]
    if found.difference <= far:
        return
    if found.explained is not None:
        yield NotExamined(found.explained)
        return
    if seen.one(Architecture).has("batchnorm") and sizes and sizes[0] < LEAST_SAMPLES:
        yield NotExamined(f"batch statistics of {sizes[0]} samples are too noisy to compare the modes")
        return
    yield Evidence(
        summary=f"outputs in training and in evaluation mode differ by {found.difference:.2g} times their spread, "
        f"where dropout and other noise make up {found.noise:.2g}" + _losses(found) + _pace(found),
        numbers={
            "difference": found.difference,
            "noise": found.noise,
            "train_loss": found.train_loss,
            "eval_loss": found.eval_loss,
            "epochs_to_follow": found.epochs_to_follow,
        },
        strength=found.difference / far,
    )


def _losses(found: ModeAgreement) -> str:
    if found.train_loss is None or found.eval_loss is None:
        return ""
    return f"; the loss is {found.train_loss:.3g} in training and {found.eval_loss:.3g} in evaluation mode"


def _pace(found: ModeAgreement) -> str:
    if found.epochs_to_follow is None:
        return ""
    return f"; the running statistics take {found.epochs_to_follow:.0f} epochs to follow this data"
