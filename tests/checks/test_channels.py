"""channels-misplaced: told from the shapes at the convolution that fails, and from nothing else."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sleuth import Report
from tests.checks.data_stage import judge, loader, names
from tests.material import digit_images

CHECKS = ["channels-misplaced", "forward-fails"]


class Turning(nn.Module):
    """Permutes before the first convolution."""

    def __init__(self, *axes: int, head: int = 10 * 64) -> None:
        super().__init__()
        self.axes = axes
        self.stem = nn.Conv2d(3, 10, 3, padding=1)
        self.head = nn.Linear(head, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.stem(x.permute(self.axes))).flatten(1))


def colours(*axes: int) -> np.ndarray:
    """Digits in three shades, (n, 3, 8, 8) turned by these axes."""
    x = digit_images()[0]
    return np.ascontiguousarray(np.concatenate([x, 1 - x, x**2], axis=1).transpose(axes or (0, 1, 2, 3)))


def examined(model: nn.Module, images: np.ndarray) -> Report:
    return judge(model, loader(images, digit_images()[1]), checks=CHECKS)


@pytest.mark.parametrize(
    ("batch", "turn", "cure"),
    [
        ((0, 1, 2, 3), (0, 3, 1, 2), "out of forward"),
        ((0, 1, 2, 3), (0, 2, 3, 1), "out of forward"),
        ((0, 2, 3, 1), (0, 1, 3, 2), "x.permute(0, 3, 1, 2) and nothing else"),
        ((0, 2, 1, 3), (0, 3, 1, 2), "x.permute(0, 2, 1, 3)"),
    ],
)
def test_a_turn_too_many_in_forward_is_the_cause_of_the_failure(batch: tuple[int, ...], turn: tuple[int, ...], cure: str) -> None:
    culprit = examined(Turning(*turn), colours(*batch)).culprits[0]
    assert (culprit.finding.name, culprit.finding.where) == ("channels-misplaced", "stem")
    assert [s.name for s in culprit.symptoms] == ["forward-fails"]
    assert cure in culprit.finding.fix


def test_images_whose_channels_stand_last_are_named_as_they_come() -> None:
    finding = examined(Turning(0, 1, 2, 3), colours(0, 2, 3, 1)).culprits[0].finding
    assert finding.name == "channels-misplaced"
    assert "channels last" in finding.summary


def test_a_model_that_turns_them_rightly_is_clear() -> None:
    assert not examined(Turning(0, 3, 1, 2), colours(0, 2, 3, 1)).findings


def test_a_failure_behind_convolutions_that_turn_rightly_is_not_about_channels() -> None:
    assert names(examined(Turning(0, 3, 1, 2, head=99), colours(0, 2, 3, 1))) == ["forward-fails"]


@pytest.mark.parametrize("channels", [1, 4, 8, 16])
def test_a_convolution_of_another_width_is_a_matter_of_the_layer(channels: int) -> None:
    """Eight channels wanted of three, in images that happen to be eight pixels wide: nothing was turned."""
    model = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 10))
    assert names(examined(model, colours())) == ["forward-fails"]
