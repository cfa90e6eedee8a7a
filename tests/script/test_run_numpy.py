"""`sleuth run` on a script that trains by hand in NumPy: nothing is guessed, and the way to watch it is told."""

from pathlib import Path

from tests.script.ways import plain, report_of, watched

SCRIPT = """
import numpy as np
x, y = np.random.default_rng(0).normal(size=(64, 4)), np.arange(64) % 2
w = np.zeros(4)
for _ in range(20):
    p = 1 / (1 + np.exp(-x @ w))
    w -= 0.1 * x.T @ (p - y) / len(y)
print(w.sum())
"""


def test_a_script_without_a_framework_is_left_alone_and_told_how_to_be_watched(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    told = report_of(watched("train.py", folder=tmp_path, runs=tmp_path / "runs"), plain("train.py", folder=tmp_path))
    assert "nothing else can be listened to from outside" in " ".join(told.split())
    assert (
        "net = sleuth.ByHand(params, forward=forward, backward=backward) # put what the loop computes into functions"
        in " ".join(told.split())
    )
    assert "with sleuth.watch(net, lr):" in told
