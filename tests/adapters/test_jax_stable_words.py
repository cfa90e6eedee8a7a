"""What to write instead of an operation that broke is said in the words of JAX."""

import itertools
import re

import pytest

from sleuth.adapters.jax.stable_words import told
from sleuth.core.observation import Origin
from sleuth.core.reading.stable_form import BACKWARD, FORWARD, stable_form

MAKERS = [(), ("softmax",), ("sigmoid",), ("sub", "sigmoid"), ("sum", "exp"), ("norm",), ("std",), ("sum",), ("sum", "square")]
RANGES = [((0.0, 0.0),), ((-2.0, 3.0),), ((0.5, 200.0),)]
FOREIGN = re.compile(r"torch|\bF\.|clamp\(|\bdim\b|masked_fill|\.float\(\)|numel|ignore_index|DataLoader|unbiased")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_no_word_of_another_framework_is_said(direction: str) -> None:
    said = set()
    known = FORWARD if direction == "forward" else BACKWARD
    bad = [(1, 0), (0, 1)]
    for operation, makers, ranges, (nans, infs), dtype in itertools.product(known, MAKERS, RANGES, bad, ["float32", "float16"]):
        for unused, taken_by, constants in ((False, None, ()), (True, None, ()), (False, "log", ()), (False, None, (-1.0,))):
            origin = Origin(
                0,
                operation,
                direction,
                None,
                ranges,
                None,
                nans,
                infs,
                dtype,
                constants,
                makers,
                taken_by=taken_by,
                unused=unused,
            )
            said.add(stable_form(told(origin)))
    said.discard(None)
    assert len(said) > 8
    foreign = [text for text in said if text and FOREIGN.search(text)]
    assert not foreign, foreign[:3]


def test_the_logarithm_of_a_softmax_is_told_as_jax_has_it() -> None:
    origin = Origin(0, "log", "forward", None, ((0.0, 1.0),), None, infs=1, makers=("softmax",))
    assert stable_form(told(origin)) == (
        "Write jax.nn.log_softmax(scores, axis) instead of log(softmax(scores)), or give the raw scores to "
        "optax.softmax_cross_entropy_with_integer_labels."
    )
