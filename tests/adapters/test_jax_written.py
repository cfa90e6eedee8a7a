"""Where a script names the activation that a model ends in, if its last line does not."""

from pathlib import Path

import pytest

from sleuth.adapters.jax.source_lines import function_line
from sleuth.core.location import locate

CALL = "return self.body(x)"


@pytest.mark.parametrize(
    ("lines", "word", "found"),
    [
        (["MLP(activation=jax.nn.relu,", "    final_activation=jax.nn.relu)", CALL], "relu", 2),
        (["layers = [relu, relu,", "    jax.nn.sigmoid]", CALL], "sigmoid", 2),
        (["layers = [relu,", "    relu]", CALL], "relu", 3),  # which of them cannot be told
        (["h = jax.nn.relu(x)", CALL], "relu", 2),  # called there and then, and not handed on
    ],
)
def test_the_line_that_hands_on_an_activation_is_found_where_it_is_the_only_one(
    lines: list[str], word: str, found: int, tmp_path: Path
) -> None:
    file = tmp_path / "script.py"
    file.write_text("\n".join(line if line != CALL else "def f(self, x): " + CALL for line in lines))
    called = locate(str(file), len(lines))
    line = function_line(word, called)
    assert line is not None
    assert line.line == found
