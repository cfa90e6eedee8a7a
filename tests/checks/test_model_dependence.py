"""input-ignored and samples-mix, on inputs and outputs of many forms."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sleuth.core.stage import Confidence, Severity
from sleuth.core.subject import Subject
from tests.checks.looking import look, training
from tests.material import digits

BOTH = ("input-ignored", "samples-mix")


class Made(nn.Module):
    """A model of some parts and a function that is its forward."""

    def __init__(self, forward, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)
        self._forward = forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward(self, *args, **kwargs)


def rows() -> tuple[np.ndarray, np.ndarray]:
    x, y = digits()
    return x.reshape(-1, 8, 8), y


def test_a_recurrent_layer_that_takes_samples_for_time_is_named() -> None:
    model = Made(lambda m, x: m.head(m.gru(x)[0][:, -1]), gru=nn.GRU(8, 24), head=nn.Linear(24, 10))
    found = look(training(model, data=rows()), "samples-mix").one()
    assert found.where == "gru"
    assert "batch_first=True" in found.fix


def test_attention_over_the_samples_is_named() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    model = Made(lambda m, x: m.head(m.body(x).flatten(1)), body=layer, head=nn.Linear(64, 10))
    found = look(training(model, data=rows()), "samples-mix").one()
    assert "self_attn" in (found.where or "")
    assert found.confidence is Confidence.LIKELY


def test_a_reshape_that_mixes_samples_is_certain() -> None:
    def forward(model: Made, x: torch.Tensor) -> torch.Tensor:
        columns = model.first(x).reshape(32, -1)  # meant: transpose, which moves the samples along
        return model.head(torch.relu(columns.T))

    model = Made(forward, first=nn.Linear(64, 32), head=nn.Linear(32, 10))
    found = look(training(model), "samples-mix").one()
    assert found.confidence is Confidence.CERTAIN
    assert found.severity is Severity.ERROR


@dataclass
class Answer:
    logits: torch.Tensor
    state: torch.Tensor
    loss: torch.Tensor


def answer(model: Made, x: torch.Tensor) -> Answer:
    states, last = model.gru(x)
    return Answer(model.head(states[:, -1]), last, (last**2).mean())


def time_major(model: Made, x: torch.Tensor) -> torch.Tensor:
    return model.head(model.gru(x)[0])


def deviation(model: Made, x: torch.Tensor) -> torch.Tensor:
    spread = x.std(0).mean().expand(len(x), 1)
    return model.head(torch.cat([x, spread], dim=1))


def flat_by_time(model: Made, x: torch.Tensor) -> torch.Tensor:
    return model.head(model.gru(x)[0]).transpose(0, 1).flatten(0, 1)


def per_position(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    scores = output if output.dim() == 2 else output.flatten(0, 1)
    return nn.functional.cross_entropy(scores, target.flatten())


def gru() -> dict[str, nn.Module]:
    return {"gru": nn.GRU(8, 24, batch_first=True), "head": nn.Linear(24, 10)}


def labels_by_row() -> tuple[np.ndarray, np.ndarray]:
    x, y = rows()
    return x, np.repeat(y[:, None], 8, axis=1)


def test_outputs_of_many_forms_are_read_right() -> None:
    subjects = {
        "dataclass": training(Made(answer, **gru()), lambda out, y: nn.functional.cross_entropy(out.logits, y), rows()),
        "by position": training(Made(lambda m, x: m.head(m.gru(x)[0]), **gru()), per_position, labels_by_row()),
        "flat by sample": training(Made(lambda m, x: m.head(m.gru(x)[0]).flatten(0, 1), **gru()), per_position, labels_by_row()),
        "flat by time": training(Made(flat_by_time, **gru()), lambda out, y: per_position(out, y.T), labels_by_row()),
    }
    for name, subject in subjects.items():
        seen = look(subject, *BOTH)
        assert not seen.findings, (name, seen.findings)
        assert "samples-mix" not in seen.not_examined, (name, seen.not_examined)


def test_time_first_data_cannot_be_told_from_a_mistake() -> None:
    x, y = labels_by_row()
    batches = [
        (torch.as_tensor(x[i : i + 24]).transpose(0, 1), torch.as_tensor(y[i : i + 24]).transpose(0, 1))
        for i in range(0, 240, 24)
    ]
    model = Made(time_major, gru=nn.GRU(8, 24), head=nn.Linear(24, 10))
    seen = look(Subject(model, batches, per_position, torch.optim.Adam(model.parameters())), *BOTH)
    assert not seen.findings
    assert "second axis" in seen.not_examined["samples-mix"]


def test_batch_statistics_in_evaluation_mode_are_not_accused() -> None:
    norm = nn.BatchNorm1d(32, track_running_stats=False)
    seen = look(training(nn.Sequential(nn.Linear(64, 32), norm, nn.ReLU(), nn.Linear(32, 10))), *BOTH)
    assert not seen.findings
    assert "batch statistics" in seen.not_examined["samples-mix"]
    assert not look(training(Made(deviation, head=nn.Linear(65, 10))), *BOTH).findings


def test_normalisation_dropout_and_padding_do_not_mix() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 16, padding_idx=0)
            self.body = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            self.head = nn.Linear(16, 3)

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            hidden = self.body(self.embed(ids), src_key_padding_mask=mask == 0)
            return self.head((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))

    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 13, 320)
    mask = (np.arange(12) < lengths[:, None]).astype(np.float32)
    ids = (rng.integers(1, 20, (320, 12)) * mask).astype(np.int64)
    y = (ids[:, 0] % 3).astype(np.int64)
    batches = [
        {
            "ids": torch.as_tensor(ids[i : i + 32]),
            "mask": torch.as_tensor(mask[i : i + 32]),
            "labels": torch.as_tensor(y[i : i + 32]),
        }
        for i in range(0, 320, 32)
    ]
    model = Packed()
    seen = look(Subject(model, batches, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())), *BOTH)
    assert not seen.findings
    assert not seen.not_examined


def test_a_model_with_dice_in_evaluation_mode_is_judged_with_the_same_dice() -> None:
    model = Made(
        lambda m, x: m.head(torch.relu(m.body(x) + torch.randn(len(x), 32))), body=nn.Linear(64, 32), head=nn.Linear(32, 10)
    )
    seen = look(training(model), *BOTH)
    assert not seen.findings
    assert not seen.not_examined


def test_an_input_that_is_multiplied_away_is_certain() -> None:
    model = Made(lambda m, x: m.head(torch.relu(m.body(x * 0))), body=nn.Linear(64, 32), head=nn.Linear(32, 10))
    found = look(training(model), "input-ignored").one()
    assert found.confidence is Confidence.CERTAIN
    assert found.severity is Severity.ERROR


def test_token_ids_that_never_reach_the_output_are_found() -> None:
    model = Made(
        lambda m, ids: m.head(m.embed(torch.zeros_like(ids)).mean(1)), embed=nn.Embedding(17, 16), head=nn.Linear(16, 10)
    )
    x, y = digits()
    assert look(training(model, data=((x * 16).astype(np.int64), y)), "input-ignored").one()


def two_inputs(forward) -> Subject:
    x, y = digits()
    side = np.random.default_rng(0).normal(size=(len(x), 4)).astype(np.float32)
    model = Made(forward, body=nn.Linear(64, 10), side=nn.Linear(4, 10))
    return training(model, data=(x, side, y))


def test_a_secondary_input_may_be_ignored_and_the_main_one_may_not() -> None:
    assert not look(two_inputs(lambda m, x, side: m.body(x)), *BOTH).findings
    found = look(two_inputs(lambda m, x, side: m.side(side)), "input-ignored").one()
    assert found.severity is Severity.WARNING
    assert found.where == "0"


def test_an_input_that_only_training_uses_is_used() -> None:
    def forward(model: Made, x: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
        return model.side(side) + (model.body(x) if model.training else 0)

    assert not look(two_inputs(forward), "input-ignored").findings


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_size_of_the_outputs_does_not_matter(scale: float) -> None:
    model = Made(lambda m, x: m.head(x) * scale + 3.0, head=nn.Linear(64, 10))
    seen = look(training(model), *BOTH)
    assert not seen.findings
    assert not seen.not_examined


def with_spread(model: Made, x: torch.Tensor) -> torch.Tensor:
    """The last trick of a GAN's critic: how much the batch varies, as one more feature."""
    hidden = torch.relu(model.body(x))
    return model.head(torch.cat([hidden, hidden.std(0).mean().expand(len(x), 1)], dim=1))


def mixed_up(model: Made, x: torch.Tensor) -> torch.Tensor:
    return model.head(torch.relu(model.body(0.7 * x + 0.3 * x.roll(1, 0) if model.training else x)))


def by_heads(model: Made, x: torch.Tensor) -> torch.Tensor:
    heads = model.body(x).view(len(x), 8, 2, 4).transpose(1, 2)
    mixed = (heads @ heads.transpose(-1, -2) / 2).softmax(-1) @ heads
    return model.head(mixed.transpose(1, 2).reshape(len(x), -1))


def folded(model: Made, x: torch.Tensor) -> torch.Tensor:
    return model.head(torch.relu(model.body(x.reshape(-1, 8))).reshape(len(x), 8, -1).flatten(1))


def turned(model: Made, x: torch.Tensor) -> torch.Tensor:
    return model.head(model.body(x.transpose(0, 1))[0][-1])


APART = {
    "batch norm": lambda: training(nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))),
    "spread of the batch": lambda: training(Made(with_spread, body=nn.Linear(64, 32), head=nn.Linear(33, 10))),
    "mix-up": lambda: training(Made(mixed_up, body=nn.Linear(64, 32), head=nn.Linear(32, 10))),
    "attention by hand": lambda: training(Made(by_heads, body=nn.Linear(8, 8), head=nn.Linear(64, 10)), data=rows()),
    "positions as samples": lambda: training(Made(folded, body=nn.Linear(8, 16), head=nn.Linear(128, 10)), data=rows()),
    "time first inside": lambda: training(Made(turned, body=nn.GRU(8, 24), head=nn.Linear(24, 10)), data=rows()),
    "attention": lambda: training(
        nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(64, 10)), data=rows()
    ),
}


@pytest.mark.parametrize("name", APART)
def test_what_mixes_in_training_alone_or_not_at_all_is_not_accused(name: str) -> None:
    assert not look(APART[name](), "samples-mix").findings


def similarities(model: Made, x: torch.Tensor) -> torch.Tensor:
    codes = nn.functional.normalize(model.body(x), dim=1)
    return 10 * codes @ codes.T


def own_row(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output, torch.arange(len(output))) + 0 * target.sum()


def test_a_loss_across_samples_is_no_mixing() -> None:
    def contrast(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        one, other = (model(batch[0] + 0.1 * torch.randn_like(batch[0])) for _ in range(2))
        return nn.functional.cross_entropy(one @ other.T, torch.arange(len(one)))

    assert not look(training(Made(similarities, body=nn.Linear(64, 16)), own_row), "samples-mix").findings
    assert not look(training(nn.Linear(64, 16), step=contrast), "samples-mix").findings


MIXING = {
    "transposed view": lambda m, x: m.head(torch.relu(m.body(x).t().contiguous().view(-1, 32))),
    "convolution over the samples": lambda m, x: m.head(m.conv(m.body(x).T.unsqueeze(0)).squeeze(0).T),
    "running sum over the samples": lambda m, x: m.head(torch.relu(m.body(x)).cumsum(0) / len(x)),
    "neighbour": lambda m, x: m.head(m.body(x) + torch.relu(m.body(x)).roll(1, 0)),
}


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_mix_in_their_order_are_certain(name: str) -> None:
    conv = nn.Conv1d(32, 32, 3, padding=1)
    model = Made(MIXING[name], body=nn.Linear(64, 32), head=nn.Linear(32, 10), conv=conv)
    assert look(training(model), "samples-mix").one().confidence is Confidence.CERTAIN


def test_the_cure_names_the_layer_that_the_user_wrote() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    model = Made(lambda m, x: m.head(m.body(x).flatten(1)), body=layer, head=nn.Linear(64, 10))
    found = look(training(model, data=rows()), "samples-mix").one()
    assert "TransformerEncoderLayer(..., batch_first=True)" in found.fix
