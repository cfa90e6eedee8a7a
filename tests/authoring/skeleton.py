"""The two files of a new check: they can be imported as they are, and every line that its author must think about says TODO."""

import difflib
from dataclasses import dataclass

from sleuth.core import observation, trial
from sleuth.core.stage import Stage
from tests.authoring.naming import NameRefused, Place, free_code

CHECK = '''"""TODO: the illness in one sentence, as a plain statement."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.{module} import {imported}
from sleuth.core.stage import Severity, Stage

# TODO: why this number: a source, a measurement, or what is lost beyond it. Name it after what it bounds.
BOUND = 0.5
# TODO: why fewer cannot tell.
LEAST = {least}


@check(
    code="{code}",
    stage=Stage.{stage},
    severity=Severity.WARNING,  # TODO: ERROR: it cannot learn so; WARNING: it learns worse; HINT: worth a look
    # TODO: all that must have been seen, of core/observation or core/trial (probes); a tuple inside means any of these
    reads=({reads},),
    # TODO: names of checks that speak as a direct consequence, so that one culprit is kept; ./dev check tells which may lack
    explains=(),
    title="TODO: a plain statement in the present tense, at most 60 characters, no full stop",
    why="""TODO: two sentences on how it comes about and what it does to the training.""",
    fix="""TODO: begin with a verb, the likeliest cure first, so concrete that it can be typed.""",
    decided_by="TODO: the measurement that settles it, in one line without a full stop",
    symptoms=("TODO: what people type who have it, three to five phrases, the likeliest first",),
)
def {function}(seen: Seen, *, bound: float = BOUND) -> Iterator[Evidence | NotExamined]:
    {look}
    if {count} < LEAST:
        yield NotExamined(f"only {{{count}}} {unit} were seen")  # TODO: whatever else makes it impossible to tell
        return
    measured = 0.0  # TODO: the number that decides, from {source}
    if measured > bound:
        yield Evidence(
            where=None,  # TODO: the path of the layer, weight or column, if it has one; location= for a line
            summary=f"TODO: what was seen, with its number: {{measured:.2g}}",
            numbers={{"measured": measured}},
            strength=measured / bound,
        )
'''

CASE = '''"""TODO: the story in one sentence: the data, the model, and what is wrong in the sick training."""

from sleuth import Subject
from sleuth.testing import Kit{training}
from tests.material import digits  # also: digit_images, cancer, wine, diabetes
{watch}

def sick(kit: Kit) -> {built}:
    return training(kit, ill=True)


def healthy(kit: Kit) -> {built}:
    return training(kit, ill=False)


def training(kit: Kit, ill: bool) -> {built}:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    optimiser = kit.optimiser(model, "adam", lr=1e-3)
    # TODO: where `ill`, change the one cause (x, y, the model, the loss or the optimiser) and nothing else.
    {returned}
'''
SUBJECT = 'Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), optimiser)'


@dataclass(frozen=True)
class Look:
    """What a check of a stage usually reads, so that the skeleton runs."""

    imported: str
    reads: str
    look: str
    source: str
    count: str
    unit: str
    least: int
    module: str = "observation"


STEPS = Look("Step", "Step", "steps = seen.all(Step)", "`steps`", "len(steps)", "steps", 20)
LAYERS = Look("Architecture", "Architecture", "layers = seen.one(Architecture).layers", "`layers`", "len(layers)", "layers", 1)
DATA = Look(
    "Batch, Split",
    "Batch",
    "samples = sum(batch.size for batch in seen.batches(Split.TRAIN))",
    "the batches",
    "samples",
    "samples",
    50,
)
LOOKS = {Stage.DATA: DATA, Stage.MODEL: LAYERS, Stage.BATCH: DATA, Stage.CONSISTENCY: LAYERS}


def reading(name: str) -> Look:
    """What is seen in a training, or measured by an experiment. Raises NameRefused."""
    kinds = {kind: module.__name__.split(".")[-1] for module in (observation, trial) for kind in module.__all__}
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, n=3, cutoff=0.3)
        raise NameRefused(
            f"{name} is neither in sleuth.core.observation nor in sleuth.core.trial; near to it: {', '.join(near)}."
        )
    return Look(name, name, f"found = seen.all({name})", "`found`", "len(found)", f"of {name}", 1, kinds[name])


def check_text(place: Place, reads: str | None = None) -> str:
    look = reading(reads) if reads else LOOKS.get(place.stage, STEPS)
    return CHECK.format(code=free_code(place.stage), stage=place.stage.name, function=place.function, **vars(look))


def case_text(place: Place) -> str:
    """A training is watched where the illness shows in its loop; elsewhere it is enough to examine the parts."""
    if place.stage is Stage.TRAINING:
        watched = f"return Training({SUBJECT}, steps=300)"
        return CASE.format(training=", Training", watch='\nSOURCE = "watch"\n', built="Training", returned=watched)
    return CASE.format(training="", watch="", built="Subject", returned=f"return {SUBJECT}")
