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


class OneBlock(nn.Module):
    """As BERT is built and started: queries and keys, each a layer of its own, are the first after the embedding."""

    def __init__(self, fading: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(17, 32)
        self.query, self.key, self.value, self.out = (nn.Linear(32, 32) for _ in range(4))
        self.wide, self.narrow = nn.Linear(32, 64), nn.Linear(64, 32)
        self.pooler = nn.Sequential(*(m for _ in range(fading) for m in (nn.Linear(32, 32), nn.Sigmoid())), nn.Linear(32, 32))
        self.head = nn.Linear(32, 10)
        for weight in self.parameters():
            (nn.init.normal_ if weight.dim() > 1 else nn.init.zeros_)(weight, **({"std": 0.02} if weight.dim() > 1 else {}))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = nn.functional.layer_norm(self.embedding(ids), (32,))
        weights = (self.query(x) @ self.key(x).transpose(1, 2) / 32**0.5).softmax(dim=-1)
        x = x + self.out(weights @ self.value(x))
        x = x + self.narrow(nn.functional.gelu(self.wide(x)))
        return self.head(self.pooler(x[:, 0]).tanh())


def test_queries_and_keys_of_an_attention_that_looks_everywhere_alike_are_not_out_of_reach() -> None:
    x, _ = digits()
    report = judge(OneBlock(), (x * 16).round().astype("int64")[:, ::4], lr=1e-5)
    assert not report.findings
    assert "vanishing-gradients" in report.clear


def test_an_embedding_does_not_hide_that_everything_before_a_long_chain_is_out_of_reach() -> None:
    x, _ = digits()
    report = judge(OneBlock(fading=5), (x * 16).round().astype("int64")[:, ::4])
    assert [f.name for f in report.findings] == ["vanishing-gradients"]


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
