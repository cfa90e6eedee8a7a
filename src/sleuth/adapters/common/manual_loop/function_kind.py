"""What the user's own functions are for."""

from enum import StrEnum


class FunctionKind(StrEnum):
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    CLEAR = "zero_grad"
    CLIP = "clip"
    UPDATE = "update"
    TRAIN_STEP = "train_step"  # all of a step
