"""How often an illness is met, before anything is known of the training: orders the suspects that a symptom leaves open."""

from sleuth.core.check import Check
from sleuth.core.stage import Severity, Stage

# "Most bugs are in the data; hyperparameters are almost never the first problem" is how experts work, and what is counted:
# data and logic bugs make up more than 48 % of 2,716 posts and 500 fixes (Islam et al., ESEC/FSE 2019, arXiv:1906.01388).
# What a batch or a training shows is more often the symptom than the cause.
BY_STAGE = {Stage.DATA: 0.85, Stage.MODEL: 0.8, Stage.HYPERPARAMETERS: 0.75}
OTHERWISE = 0.7
# Missing preprocessing, unbalanced or too little data, wrong shapes, a wrong loss, wrong initialisation and a learning rate that
# does not fit stand in a taxonomy of 1,059 artefacts and 20 interviews, of whose 15 categories 13 had been met by at least half
# of the developers who were asked (Humbatova et al., ICSE 2020, arXiv:1910.11015). Softmax before a loss that does it too, modes
# not switched and axes mixed up are three of the six mistakes that Karpathy called the most common (2018). The figures
# themselves are our estimate: they order suspects and mean no more.
OFTEN = {
    "input-not-normalised": 1.0,
    "learning-rate-too-high": 1.0,
    "forward-fails": 1.0,
    "input-not-finite": 0.95,
    "class-imbalance": 0.95,
    "labels-misaligned": 0.95,
    "double-softmax": 0.95,
    "train-eval-disagree": 0.95,
    "output-target-mismatch": 0.95,
    "data-not-shuffled": 0.9,
    "wrong-loss-for-task": 0.9,
    "bad-initialisation": 0.9,
    "learning-rate-too-low": 0.9,
    "capacity-too-large": 0.9,
    "samples-mix": 0.85,
}
# What stops or spoils a training is looked for sooner than what only harms it.
BY_SEVERITY = {Severity.ERROR: 1.0, Severity.WARNING: 0.95, Severity.HINT: 0.8}


def commonness(check: Check) -> float:
    """From 0 to 1; a check that no survey names has the share of its stage."""
    return OFTEN.get(check.name, BY_STAGE.get(check.stage, OTHERWISE)) * BY_SEVERITY[check.severity]
