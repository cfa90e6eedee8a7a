"""Layers written in Mojo are compiled, called from Python with NumPy arrays, and examined as if they were NumPy.

Compiling takes some 15 s of one processor; both reports come from one process, so it is done once.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The compiler wants a processor for some 15 s, which on a busy machine are minutes.
pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

EXAMPLE = Path(__file__).parents[1] / "examples" / "mojo"
SCRIPT = """
import json, numpy as np, sleuth, network
x = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
net, made = network.Network(), []
for dtype in (np.float32, np.float64):
    for name, array in net.parameters().items():
        setattr(net, name, array.astype(dtype))
    out = net.forward(x)
    by_numpy = np.maximum(x.astype(dtype) @ net.w1 + net.b1, 0) @ net.w2 + net.b2
    made.append(float(abs(out - by_numpy).max()))
told = {"differences": made}
for name in ("training", "sick"):
    parts = getattr(network, name)()
    told[name] = sleuth.examine(sleuth.Subject(**parts), budget_seconds=600, progress=False).to_dict()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("mojo")
    for file in ("layers.mojo", "network.py"):
        shutil.copy(EXAMPLE / file, folder)
    # What is compiled stays in this folder too: the importer writes beside the source, the compiler where it is told.
    environment = {**os.environ, "MODULAR_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_layers_in_mojo_compute_what_numpy_computes(told: dict[str, Any]) -> None:
    single, double = told["differences"]
    assert single < 1e-5
    assert double < 1e-12


def test_a_right_network_in_mojo_is_silent(told: dict[str, Any]) -> None:
    report = told["training"]
    assert (report["status"], report["findings"]) == ("healthy", [])
    assert {"gradient-wrong", "cannot-overfit-one-batch", "learning-rate-too-high"} <= set(report["clear"])


def test_a_wrong_backward_in_mojo_is_named_and_located(told: dict[str, Any]) -> None:
    (culprit, *_) = told["sick"]["culprits"]
    assert (culprit["name"], culprit["where"], culprit["confidence"]) == ("gradient-wrong", "b2", "certain")
    assert "that of the last sample alone: the sum over the batch is missing" in culprit["summary"]
    assert culprit["location"]["file"].endswith("network.py")
