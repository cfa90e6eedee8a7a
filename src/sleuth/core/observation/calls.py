"""The words for what a loop calls. Adapters translate their framework's calls into these, and checks read nothing else."""

from enum import StrEnum


class CallKind(StrEnum):
    """What may stand in `Step.calls`, `Step.counts`, `Pending.calls`, `Phase.kind` and `Call.kind`."""

    # The model is called.
    FORWARD = "forward"
    FORWARD_IN_EVAL = "forward-in-eval"
    VALIDATE = "validate"  # without a graph, in evaluation mode
    VALIDATE_IN_TRAIN = "validate-in-train"  # without a graph, in training mode

    # Gradients are computed and changed.
    BACKWARD = "backward"
    GRADIENT = "gradient"  # asked for without a backward
    ZERO_GRAD = "zero_grad"
    UNSCALE = "unscale"
    CLIP = "clip"
    CLIP_ON_USED_GRADIENT = "clip-on-used-gradient"  # after the step
    CLIP_UNUSED = "clip-unused"  # it returned others, which the step did not take
    CLIP_ON_NOTHING = "clip-on-nothing"  # before the backward
    CLIP_ON_SCALED_GRADIENT = "clip-on-scaled-gradient"  # before a scaler's unscale
    ERASED_BACKWARD = "erased-backward"  # in counts only: its gradient was cleared before a step could use it

    # The learning rate.
    SCHEDULER = "scheduler"
    FIRST_SCHEDULER = "first-scheduler"  # before the optimiser ever stepped
    TOLD_SCHEDULER = "told-scheduler"  # that was given a metric or an epoch
    SCHEDULER_OF_ANOTHER = "scheduler-of-another"  # optimiser
    FIRST_SCHEDULER_OF_ANOTHER = "first-scheduler-of-another"
    TOLD_SCHEDULER_OF_ANOTHER = "told-scheduler-of-another"

    # The step itself: the last of a step's calls is one of these.
    STEP = "step"
    STEP_ON_USED_GRADIENT = "step-on-used-gradient"  # that an earlier step had used and nobody cleared
    STEP_ON_ALTERED_GRADIENT = "step-on-altered-gradient"  # the same, but changed by hand in between
    STEP_ON_SAME_GRADIENT = "step-on-same-gradient"  # no backward since the last step
    STEP_ON_GIVEN_GRADIENT = "step-on-given-gradient"  # that came from no backward
    STEP_ON_ERASED_GRADIENT = "step-on-erased-gradient"  # cleared after the backward
    STEP_WITHOUT_GRADIENT = "step-without-gradient"
    DISCARDED_STEP = "discarded-step"  # nobody kept the weights that it returned
    SKIPPED = "skipped"  # by a scaler
    SKIPPED_ON_USED_GRADIENT = "skipped-on-used-gradient"

    # Places only (`Call`): told when they are first met, or at the end of a watch.
    BATCH = "batch"  # a loader gives one
    UPDATE = "update"  # new weights are put together by hand
    TRAIN = "train"  # the model's mode is set
    EVAL = "eval"
    TRAIN_TO_VALIDATE = "train-to-validate"  # training mode, in a function that validates
    MADE_OPTIMISER = "made-optimiser"
    MADE_SCHEDULER = "made-scheduler"
    MADE_LOADER = "made-loader"  # of the training's batches
    SETS_RATE = "sets-rate"  # by hand
    BATCH_SIZE = "batch-size"  # was given
    CHOSEN_PARAMETERS = "chosen-parameters"  # that the optimiser is given
    WIRED_IN = "wired-in"  # a layer that acts as in training always
    NARROWED = "narrowed"  # the weights were given a type of half the width
    RETURNS_WEIGHTS = "returns-weights"  # a step that changes nothing in place

    @property
    def is_step(self) -> bool:
        return self.value.startswith(("step", "skipped"))

    @property
    def of_another(self) -> "CallKind":
        """The same, done for another optimiser than the one that steps."""
        return CallKind(f"{self.value}-of-another")


# Calls of the model that build a graph, and those that do not.
WITH_GRAPH = (CallKind.FORWARD, CallKind.FORWARD_IN_EVAL)
WITHOUT_GRAPH = (CallKind.VALIDATE, CallKind.VALIDATE_IN_TRAIN)
