"""What is drawn follows from shape and dtype."""

import json

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import sleuth
from tests.material import cancer, digit_images

LABELS = torch.tensor([0, 1, 2, 1])
BATCHES = {
    "images": [torch.rand(4, 3, 8, 8), torch.rand(4, 8, 8, 3), torch.rand(4, 28, 28), torch.zeros(4, 9, 7, dtype=torch.uint8)],
    "signals": [torch.rand(4, 2, 300), torch.rand(4, 500), torch.rand(4, 100, 3)],
    "tokens": [torch.randint(0, 9, (4, 12))],
    "table": [torch.rand(4, 13)],
    "numbers": [torch.rand(4)],
    "text": [["one", "two", "three $x$", "<four>"]],
}


@pytest.mark.parametrize("kind", BATCHES)
def test_the_kind_is_told_from_shape_and_dtype(kind: str) -> None:
    for inputs in BATCHES[kind]:
        shown = sleuth.show_batch((inputs, LABELS), classes=["cat", "dog", "owl"])
        assert shown.kind == kind
        assert shown.labels == ("cat", "dog", "owl", "dog")
        assert shown.plot().axes
        json.dumps(shown.to_dict())


def test_a_loader_shows_its_first_batch_with_range_and_labels() -> None:
    x, y = digit_images()
    shown = sleuth.show_batch(DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), 32), most=9)
    assert (shown.kind, shown.samples, shown.most) == ("images", 32, 9)
    assert shown.labels[:3] == ("0", "1", "2")
    assert "range [0, 1]" in str(shown)
    assert len(shown.plot().axes) == 9


def test_arrays_of_numpy_mappings_and_broken_numbers_are_shown() -> None:
    x, y = cancer()
    x = x[:8].copy()
    x[0, 0], x[1, 1] = np.nan, np.inf
    shown = sleuth.show_batch({"features": x, "label": y[:8]})
    assert shown.kind == "table"
    drawn = shown.plot().axes[0].images[0].get_array()
    assert np.isfinite(np.asarray(drawn)[2:]).all(), "the others of a column are not hidden by a broken one"


def test_ids_are_decoded_and_a_label_without_a_class_is_told() -> None:
    shown = sleuth.show_batch(
        (torch.tensor([[1, 2], [2, 1]]), torch.tensor([0, 7])), classes=["no"], decode=lambda ids: f"w{ids[0]}"
    )
    assert "w1  → no" in str(shown)
    assert shown.labels[1] == "7 (no class)"


def test_a_target_that_is_an_image_is_no_label() -> None:
    shown = sleuth.show_batch((torch.rand(2, 3, 8, 8), torch.zeros(2, 8, 8, dtype=torch.long)))
    assert shown.labels is None
    assert shown.target.shape == (2, 8, 8)


def test_what_holds_nothing_to_see_is_refused() -> None:
    with pytest.raises(sleuth.UnusableInput, match="holds no array"):
        sleuth.show_batch((object(), object()))
