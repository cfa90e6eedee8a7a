"""What `sleuth run` adds to a script from its start to its end: seconds of processor time, beside plain Python.

./dev bench start [PAIRS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BARE = "import torch\n"
TRAINING = """import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    optimiser.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(0, 10, (32,))).backward()
    optimiser.step()
"""


def seconds(command: list[str], folder: str) -> float:
    """Of the processor: the machine may be busy with other things."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def main(pairs: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("import torch, nothing else", BARE), ("20 steps of a small network", TRAINING)):
            Path(folder, "script.py").write_text(text)
            plain, watched = [sys.executable, "script.py"], [sys.executable, "-m", "sleuth", "run", "script.py"]
            found = [(seconds(plain, folder), seconds(watched, folder)) for _ in range(pairs)]
            added = statistics.median(w - p for p, w in found)
            print(f"{name:30} plain {statistics.median(p for p, _ in found):.2f} s   added {added:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
