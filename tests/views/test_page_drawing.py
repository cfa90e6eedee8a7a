"""The model's graph in the page: of an examination, and of a run that somebody else may have written."""

import base64
import re
from pathlib import Path

import torch
from torch import nn

import sleuth
from sleuth.session.script import Options, Session
from tests.material import digits

X, Y = (torch.as_tensor(part) for part in digits())
X = X.float().reshape(len(X), -1)
PICTURE = re.compile(r'<img class="graph"[^>]*src="data:image/svg\+xml;base64,([^"]+)"')


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + torch.relu(self.inner(x)))


def shown(html: str) -> str:
    found = PICTURE.findall(html)
    assert len(found) == 1
    return base64.b64decode(found[0]).decode()


def test_an_examination_shows_what_feeds_what() -> None:
    report = sleuth.examine(Net(), (X, Y), loss=nn.functional.cross_entropy, select=["forward-fails"], budget_seconds=20)
    picture = shown(report.to_html())
    assert "inner · Linear" in picture
    assert "add" in picture
    assert "svg" not in report.to_json()


def test_a_run_keeps_the_picture_for_whoever_reads_it_later(tmp_path: Path) -> None:
    session = Session("train.py", Options(directory=tmp_path, quiet=True, budget=6.0))
    session.attend("torch")
    model = Net()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(20):
        rows = slice(32 * step, 32 * step + 32)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(X[rows]), Y[rows]).backward()
        optimiser.step()
    session.end(None)
    later = sleuth.load(session.told[0].folder)
    assert "inner · Linear" in shown(later.to_html())


def test_a_model_that_fails_has_no_picture_and_its_report_all_the_same() -> None:
    report = sleuth.examine(nn.Linear(3, 10), (X, Y), loss=nn.functional.cross_entropy, select=["forward-fails"])
    assert report.culprits[0].finding.name == "forward-fails"
    assert not PICTURE.search(report.to_html())
