"""`%%sleuth`, in a notebook's own shell."""

import subprocess
import sys
from pathlib import Path

from tests.script.ways import ENVIRONMENT, SCRIPTS

SESSION = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
shell.history_manager.enabled = False
shell.run_line_magic("load_ext", "sleuth")
for cell in CELLS:
    result = shell.run_cell(cell)
    print("cell ended", result.success)
from sleuth.adapters.torch.watching import patches
print("left behind:", patches.LISTENERS, patches._patches)
"""
PREPARED = """import torch
from material import X, Y, Net
from torch.nn import functional
model = Net()
optimiser = torch.optim.SGD(model.parameters(), 0.05)"""
PILED_UP = """%%sleuth --select missing-zero-grad --select forward-fails
for _ in range(30):
    functional.cross_entropy(model(X[:32]), Y[:32]).backward()
    optimiser.step()
last = 5"""
ENOUGH = PILED_UP.replace("%%sleuth", '%%sleuth --steps 20 --budget 0 --ignore "missing-zero-grad=they pile up on purpose"')
RAISES = "%%sleuth\nfor _ in range(3):\n    optimiser.zero_grad()\n    model(X[:, :60])\n"


def test_a_cell_is_watched_with_what_earlier_cells_made(tmp_path: Path) -> None:
    cells = [PREPARED, PILED_UP, "print('last', last)", RAISES, "%%sleuth --nonsense\n1", "%%sleuth\nprint('plain')"]
    cells += [ENOUGH.replace("last = 5", "last = 6"), "print('then', last)", "%%sleuth --ignore T410\n1"]
    code = f"CELLS = {cells!r}\n{SESSION}"
    environment = {**ENVIRONMENT, "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    out = done.stdout
    assert "✗ missing-zero-grad" in out, done
    assert "functional.cross_entropy(model(X[:32]), Y[:32]).backward()" in out
    assert "last 5" in out
    assert "✗ forward-fails" in out
    assert "sleuth/adapters" not in out, "the traceback shows no frame of ours"
    assert "sleuth: unrecognized arguments: --nonsense" in out
    assert "nothing was examined" in out
    assert "missing-zero-grad: they pile up on purpose" in out
    assert "20 steps in" in out
    assert "then 5" in out, "the cell was left in the middle, and the next one goes on"
    assert "EnoughSteps" not in out + done.stderr
    assert "To exit" not in out + done.stderr
    assert "'T410' lacks a reason" in out
    assert [line for line in out.splitlines() if line.startswith("cell ended")] == [
        f"cell ended {success}" for success in (True, True, True, False, False, True, True, True, False)
    ]
    assert "left behind: [] []" in out
