"""A script around a network written by hand cannot be heard from outside: it is told what to write, in its own names."""

from pathlib import Path

import pytest

from tests.script.ways import plain, report_of, watched

FUNCTIONS = """
import numpy as np
weights = {"W": np.zeros((4, 3)), "b": np.zeros(3)}
def forward(params, x): return x @ params["W"] + params["b"]
def backward(params, x, d): return {"W": x.T @ d, "b": d.sum(0)}
"""
CLASS = """
import numpy as np
class Network:
    def __init__(self): self.W = np.zeros((4, 3))
    def forward(self, x): return x @ self.W
    def backward(self, d): return d @ self.W.T
mlp = Network()
"""
STEP = """
import numpy as np
layers = [np.zeros((4, 3)), np.zeros(3)]
def train_step(params, x, y, lr): return 0.0
"""
WRITTEN = [
    (FUNCTIONS, ("net = sleuth.ByHand(weights, forward=forward, backward=backward)", "with sleuth.watch(net, lr):")),
    (CLASS, ("with sleuth.watch(mlp, lr):", "sleuth.examine(mlp, (X, y), loss=loss, optimizer=lr).show()")),
    (STEP, ("net = sleuth.ByHand(layers, step=train_step)", "with sleuth.watch(net, lr):")),
]


def told(text: str, folder: Path) -> str:
    (folder / "train.py").write_text(text)
    return report_of(watched("train.py", folder=folder), plain("train.py", folder=folder))


@pytest.mark.parametrize(("text", "lines"), WRITTEN, ids=["functions", "class", "step"])
def test_a_script_in_numpy_is_told_the_line_to_write(text: str, lines: tuple[str, ...], tmp_path: Path) -> None:
    added = told(text, tmp_path)
    assert "cannot be heard from outside" in added
    for line in lines:
        assert line in added


def test_a_script_without_numpy_is_told_nothing_of_it(tmp_path: Path) -> None:
    assert "NumPy" not in told("print('nothing')\n", tmp_path)
