"""Gradients that fade or grow, against healthy ones that only look so at first."""

import pytest
import torch
from torch import nn

from sleuth import Report, Subject, examine
from tests.kits.torch_kit import TorchKit
from tests.material import digits

KIT = TorchKit()
NAMES = ["vanishing-gradients", "exploding-gradients"]


def judge(model: nn.Module, x: torch.Tensor | None = None, lr: float = 1e-3) -> Report:
    pixels, y = digits()
    loader = KIT.loader(pixels if x is None else x, y)
    subject = Subject(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=lr))
    return examine(subject, select=NAMES, progress=False)


def test_a_head_that_starts_near_zero_only_holds_the_gradient_back_for_a_while() -> None:
    model = KIT.mlp(64, 32, 32, 32, 10)
    nn.init.normal_(model[-1].weight, std=1e-6)
    report = judge(model)
    assert not report.findings
    assert set(NAMES) <= set(report.clear)


@pytest.mark.long
def test_attention_and_embeddings_have_faint_gradients_by_nature() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(17, 32)
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, dropout=0.0)
            self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.head = nn.Linear(32, 10)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.encoder(self.embedding(ids)).mean(dim=1))

    x, _ = digits()
    report = judge(Small(), (x * 16).round().astype("int64")[:, ::4])
    assert not report.findings
    assert set(NAMES) <= set(report.clear)


@pytest.mark.long
def test_a_chaotic_recurrent_net_explodes_from_the_start() -> None:
    class Chaos(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = nn.RNN(1, 48, num_layers=2, batch_first=True)
            self.head = nn.Linear(48, 10)
            for name, weight in self.recurrent.named_parameters():
                if "hh" in name and weight.dim() == 2:
                    nn.init.normal_(weight, std=2.5 / 48**0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.recurrent(x)[0][:, -1])

    x, _ = digits()
    report = judge(Chaos(), x[:, :, None])
    assert [f.name for f in report.findings] == ["exploding-gradients"]
    assert report.findings[0].first_step is None


def test_large_gradients_of_the_first_steps_alone_are_no_explosion() -> None:
    model = KIT.mlp(64, 64, 32, 10)
    with torch.no_grad():
        model[-1].weight.mul_(30)
    report = judge(model, lr=1e-2)
    assert "exploding-gradients" in report.clear
