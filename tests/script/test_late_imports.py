"""Libraries ask whether torch is there long before anybody imports it, or bring it along: the training is heard all the same."""

from pathlib import Path

import pytest

from tests.script.ways import watched

LOOP = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 3)
for _ in range(12):
    optimizer.zero_grad()
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    optimizer.step()
"""

FIRST = {
    "asked_for": "import importlib.util\nassert importlib.util.find_spec('torch') is not None",
    "in_a_thread": """
import importlib, threading
thread = threading.Thread(target=importlib.import_module, args=("torch",))
thread.start()
thread.join()
""",
    "lazily": """
import importlib.util, sys
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
sys.modules["torch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["torch"])
""",
}


@pytest.mark.long
@pytest.mark.parametrize("way", FIRST)
def test_a_training_is_heard_however_torch_came(way: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FIRST[way] + LOOP)
    ended = watched("train.py", folder=tmp_path, options=("--budget", "0"))
    assert ended.code == 0, ended.errors
    assert "train.py · 12 steps" in ended.errors


def test_a_training_is_heard_after_transformers_was_imported(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text("import transformers\n" + LOOP)
    ended = watched("train.py", folder=tmp_path, options=("--budget", "0"))
    assert ended.code == 0, ended.errors
    assert "train.py · 12 steps" in ended.errors
