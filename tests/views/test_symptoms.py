"""From a symptom in a person's words to the likely culprits."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sleuth.checks import all_checks
from sleuth.core.check import Check, Evidence, Seen, check
from sleuth.core.observation import Role
from sleuth.core.stage import Severity, Stage
from sleuth.views.ideas import guessing, ideas
from sleuth.views.suspects import as_data, render
from sleuth.views.symptoms import MOST, Answer, search

SYMPTOMS = """\
loss is nan
loss stuck at 2.303
accuracy does not improve
validation worse than training
val loss goes up
cuda oom
out of memory
gradients are zero
predicts only one class
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)
Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
IndexError: Target 10 is out of bounds.
one of the variables needed for gradient computation has been modified by an inplace operation
loss goes down then nan
weights do not change
training is slow
overfitting
model predicts the same thing for every input
CUDA error: device-side assert triggered
grad is None
loss fluctuates wildly
loss is negative
""".splitlines()


def find(text: str) -> Answer:
    answer = search(text, all_checks())
    assert answer is not None, text
    return answer


def names(text: str) -> list[str]:
    return [c.name for c in find(text).checks]


def test_what_is_found_for_common_symptoms_is_on_record(golden) -> None:
    lines = []
    for text in SYMPTOMS:
        answer = find(text)
        described = f"  is {answer.described.name}" if answer.described else ""
        lines += [
            f"{text}",
            *([described] if described else []),
            *(f"  {i} {s.check.name}" for i, s in enumerate(answer.suspects, 1)),
        ]
    golden("symptoms.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("loss is nan", "input-not-finite"),
        ("loss goes down then nan", "learning-rate-too-high"),
        ("loss stuck at 2.303", "double-softmax"),
        ("accuracy does not improve", "input-not-normalised"),
        ("val loss goes up", "capacity-too-large"),
        ("predicts only one class", "class-imbalance"),
        ("IndexError: Target 10 is out of bounds.", "target-out-of-range"),
        ("weights do not change", "parameters-not-optimised"),
        ("training is slow", "learning-rate-too-low"),
        ("element 0 of tensors does not require grad", "frozen-parameters"),
        ("RuntimeError: The size of tensor a (32) must match the size of tensor b (10)", "output-target-mismatch"),
        ("expected input[32, 28, 28, 1] to have 3 channels, but got 28 channels instead", "channels-misplaced"),
    ],
)
def test_the_likeliest_culprit_comes_first(text: str, culprit: str) -> None:
    answer = find(text)
    assert answer.suspects[0].check.name == culprit


@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("loss is nan", "loss-not-finite"),
        ("the loss doesn't go down", "loss-not-decreasing"),
        ("weights do not change", "step-changes-nothing"),
        ("mat1 and mat2 shapes cannot be multiplied", "forward-fails"),
        ("modified by an inplace operation", "backward-fails"),
    ],
)
def test_a_symptom_that_a_check_looks_for_is_named_as_such(text: str, symptom: str) -> None:
    answer = find(text)
    assert answer.described is not None
    assert answer.described.name == symptom


@pytest.mark.parametrize("check", all_checks(), ids=[c.name for c in all_checks()])
def test_every_check_is_among_the_first_three_for_one_of_its_phrases(check: Check) -> None:
    phrases = check.symptoms or (check.name.replace("-", " "),)
    assert any(check.name in names(phrase)[:3] for phrase in phrases), {p: names(p) for p in phrases}


def test_phrases_are_what_a_person_would_type() -> None:
    for one in all_checks():
        assert len(set(one.symptoms)) == len(one.symptoms), one.name
        assert all(0 < len(phrase) <= 100 and phrase == phrase.strip(" .") for phrase in one.symptoms), one.name
        assert not one.decided_by.endswith("."), one.name


@pytest.mark.parametrize(
    ("typo", "right"),
    [
        ("los is nann", "loss is nan"),
        ("acuracy dose not imporve", "accuracy does not improve"),
        ("Validaton much WORSE than trainng!!", "validation worse than training"),
        ("gradeints are zero", "gradients are zero"),
        ("the weigths don't change", "weights do not change"),
        ("out of memmory", "out of memory"),
    ],
)
def test_typing_mistakes_change_nothing(typo: str, right: str) -> None:
    """The last of the suspects may change: words with mistakes weigh less."""
    assert names(typo)[:5] == names(right)[:5]


def test_the_same_question_has_the_same_answer() -> None:
    for text in SYMPTOMS:
        assert as_data(search(text, all_checks())) == as_data(search(text, reversed(all_checks()))), text


@pytest.mark.long
def test_every_process_gives_the_same_answer() -> None:
    """Sets have another order in each process."""
    code = """
from sleuth.checks import all_checks
from sleuth.views.symptoms import search
for check in all_checks():
    for text in check.symptoms:
        answer = search(text, all_checks())
        print(text, *[c.code for c in answer.checks], *[repr(s.likelihood) for s in answer.suspects])
"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("text", "worse"),
    [
        ("validation loss is higher than training loss", True),
        ("higher validation loss than training loss", True),
        ("val acc lower than train acc", True),
        ("good in training, bad on new data", True),
        ("training is good, validation is bad", True),
        ("training loss higher than validation loss", False),
        ("lower loss in validation than in training", False),
        ("test accuracy better than train accuracy", False),
        ("training accuracy below validation accuracy", False),
    ],
)
def test_who_is_worse_is_understood_from_the_order_of_words(text: str, worse: bool) -> None:
    found = ideas(text)
    assert ("validation worse" in found, "validation better" in found) == (worse, not worse)


def test_a_loss_of_guessing_is_recognised() -> None:
    assert guessing("stuck at 2.303") == ("2.303", 10)
    assert guessing("it stays 0.6931") == ("0.6931", 2)
    assert guessing("loss 6.908 on imagenet") == ("6.908", 1000)
    assert guessing("loss is 2.25") is None
    assert guessing("loss is 2") is None
    answer = search("loss stuck at 4.605", all_checks())
    assert answer.notes == ("4.605 is ln 100: the loss of a model that guesses among 100 classes.",)


def test_slowness_is_measured_too() -> None:
    assert {"waiting-for-data", "slow-layer"} <= {suspect.check.name for suspect in find("training is slow").suspects}


def test_the_last_message_of_a_pasted_traceback_counts() -> None:
    text = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation

During handling of the above exception, another exception occurred:

ValueError: loss is nan
"""
    assert names(text) == names("loss is nan")


def test_a_text_about_something_else_finds_nothing() -> None:
    for text in ("banana bread recipe", "", "?!", "the", "12345", "где моя модель"):
        assert search(text, all_checks()) is None, text


@check(
    code="M298",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    reads=(Role.WEIGHT,),
    explains=("loss-not-decreasing",),
    title="Weights wear a purple hat",
    why="Because.",
    fix="Take it off.",
)
def purple_hats(seen: Seen) -> Iterator[Evidence]:
    yield from ()


def test_a_check_without_phrases_is_found_by_its_name_title_and_consequences() -> None:
    checks = (*all_checks(), purple_hats)
    assert search("my weights have a purple hat", checks).checks == [purple_hats]
    assert purple_hats in search("loss does not decrease", checks, most=len(checks)).checks


def test_the_answer_fits_the_screen_and_says_how_to_tell() -> None:
    for text in SYMPTOMS:
        answer = find(text)
        shown = render(answer)
        assert all(len(line) <= 80 for line in shown.splitlines())
        assert len(answer.suspects) <= MOST
        assert all(s.check.code in shown for s in answer.suspects)
    assert "Decided by the count of NaN and Inf" in render(find("loss is nan"))
    assert "sleuth examine train.py:training" in render(find("loss is nan"))
