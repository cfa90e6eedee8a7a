"""A loss that does not fall: faults against honest trainings that cannot, or need not, fall."""

from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth import Report, Subject, examine
from tests.kits.torch_kit import TorchKit
from tests.material import diabetes, digits

KIT = TorchKit()
NAMES = ["loss-not-decreasing", "learning-rate-too-high", "learning-rate-too-low"]


def judge(subject: Subject) -> Report:
    return examine(subject, select=NAMES, progress=False)


def test_a_model_that_has_learned_already_may_stay_where_it_is() -> None:
    model = KIT.mlp(64, 32, 10)
    x, y = (torch.as_tensor(a) for a in digits())
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(200):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-5)))
    assert not report.findings


def test_a_target_that_is_mostly_noise_is_not_the_loss_s_fault() -> None:
    x, y = diabetes()
    noise = np.random.default_rng(0).normal(size=y.shape).astype(np.float32)
    model = KIT.mlp(10, 8, 1)
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    target = (0.1 * y + noise).astype(np.float32)
    report = examine(
        Subject(model, KIT.loader(x, target), nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=1e-2)),
        ignore={"labels-misaligned": "not asked here"},
        progress=False,
    )
    assert "loss-not-decreasing" not in [f.name for f in report.findings], report.to_text()


def test_a_game_of_two_players_need_not_lower_its_loss() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.maker = KIT.mlp(8, 32, 64)
            self.judge = KIT.mlp(64, 32, 1)

    def step(model: Pair, batch: Any) -> torch.Tensor:
        real, _ = batch
        made = model.maker(torch.randn(len(real), 8))
        bce = nn.functional.binary_cross_entropy_with_logits
        one, zero = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        judging = bce(model.judge(real), one) + bce(model.judge(made.detach()), zero)
        frozen = {k: v.detach() for k, v in model.judge.named_parameters()}
        making = bce(torch.func.functional_call(model.judge, frozen, (made,)), one)
        return judging + making

    model = Pair()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.5, 0.999))
    report = judge(Subject(model, KIT.loader(*digits()), optimizer=optimiser, step=step))
    assert not report.findings


def test_slow_is_not_flat() -> None:
    model = KIT.mlp(64, 64, 32, 32, 10)
    report = judge(Subject(model, KIT.loader(*digits()), nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=1e-2)))
    assert not report.findings
    assert "higher learning rate" in report.not_examined["loss-not-decreasing"]
