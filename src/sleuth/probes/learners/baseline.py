"""What a model's training is measured by: the best of some simple learners on the same samples."""

from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.samples import Samples, join
from sleuth.probes.learners.features import tabulate
from sleuth.probes.learners.plain_learners import Answers, answers
from sleuth.probes.learners.scoring import Task, as_answers, outputs_of, refuse_other_losses, task_of

FEWEST = 100
# With validation at hand the verdict is spoken there, however few samples there were to learn from.
FEWEST_WITH_VALIDATION = 30
# Simple learners show with these what there is to learn; more only take time.
MOST = 1024


@dataclass(frozen=True)
class Bar:
    task: Task
    learner: Answers
    score: float  # of the learner, each training sample predicted from the others
    train: list[Parts]
    validation: list[Parts]
    validation_values: np.ndarray

    def score_of_model(self, lab: Lab) -> float:
        """On the training samples."""
        outputs = self._outputs(lab)
        return 1 - float(self.task.errors(as_answers(self.task, outputs, outputs), self.task.values).mean())

    def validation_errors(self, lab: Lab) -> np.ndarray:
        """The model's, one a validation sample."""
        held = outputs_of(lab, self.validation, len(self.validation_values))
        return self.task.errors(as_answers(self.task, held, self._outputs(lab)), self.validation_values)

    def learner_errors(self) -> np.ndarray:
        return self.task.errors(self.learner.new, self.validation_values)

    def _outputs(self, lab: Lab) -> np.ndarray:
        outputs = outputs_of(lab, self.train, len(self.task.values))
        if len(outputs) != len(self.task.values):
            raise Unsupported("the model does not give one output a sample")
        return outputs


def set_bar(lab: Lab, with_validation: bool) -> Bar:
    samples = join(lab.train.batches, lab.adapter)
    count = min(len(samples), MOST)
    needed = FEWEST_WITH_VALIDATION if with_validation else FEWEST
    if count < needed:
        raise Unsupported(f"cannot tell from {count} samples: at least {needed} are needed")
    task = task_of([t[:count] for t in samples.targets])
    refuse_other_losses(lab, task)
    batches, others, values = _validation(lab, samples, task) if with_validation else ([], [], np.zeros(0))
    blocks = [block[:count] for block in samples.blocks]
    if batches:
        blocks = [np.concatenate(pair) for pair in zip(blocks, others, strict=True)]
    table = tabulate(blocks, lab.rng)
    if not table.shape[1]:
        raise Unsupported("the inputs do not vary")
    lab.tick()
    found = list(answers(table[:count], task.columns, table[count:], lab.rng))
    scores = [1 - float(task.errors(a.held_out, task.values).mean()) for a in found]
    best = int(np.argmax(scores))
    return Bar(task, found[best], scores[best], _holding(lab, count), batches, values)


def _holding(lab: Lab, count: int) -> list[Parts]:
    """The first batches, as many as hold that many samples."""
    chosen: list[Parts] = []
    held = 0
    for batch in lab.train.batches:
        if held >= count:
            break
        chosen.append(batch)
        held += len(join([batch], lab.adapter))
    return chosen


def _validation(lab: Lab, samples: Samples, task: Task) -> tuple[list[Parts], list[np.ndarray], np.ndarray]:
    """Batches, compacted inputs and targets of validation; Unsupported where they differ in kind from training."""
    given: list[Parts] = lab.validation.batches if lab.validation is not None else []
    held = join(given, lab.adapter)
    if [b.shape[1:] for b in held.blocks] != [b.shape[1:] for b in samples.blocks] or len(held.targets) != 1:
        raise Unsupported("validation has other arrays than training")
    count = min(len(held), MOST)
    flat = held.targets[0][:count].reshape(count, -1)
    values: np.ndarray = flat.astype(np.float64)
    if task.classes:
        values = flat[:, 0].astype(np.int64) if flat.shape[1] == 1 else flat.argmax(axis=1)
    if task.classes and (values.min() < 0 or values.max() >= task.classes):
        raise Unsupported("validation has classes that training does not have")
    return given, [block[:count] for block in held.blocks], values
