"""A model looked at as it grows: what comes out after each layer, where it fails, and how much of the target is still in it."""

import torch
from torch import nn

import sleuth
from tests.material import digits

X, Y = (torch.as_tensor(part) for part in digits())
X = X.float().reshape(len(X), -1)


def prefixes_of(*layers: nn.Module, prefixes: bool = True):
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    return sleuth.examine(
        model, (X, Y), loss=nn.functional.cross_entropy, prefixes=prefixes, select=["forward-fails"], budget_seconds=20
    )


def test_each_layer_is_shown_with_what_can_still_be_read_off_it() -> None:
    report = prefixes_of(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1), nn.Linear(1, 10))
    rows = {row["path"]: row for row in report.facts["prefixes"]["rows"]}
    assert list(rows) == ["0", "1", "2", "3"]
    assert rows["2"]["shape"] == (32, 1)
    assert rows["1"]["read_off"] > 0.8
    # Ten digits do not go through one number.
    assert rows["3"]["read_off"] < 0.4
    assert "After 1" in report.to_text()
    assert "guessing" in report.to_text()


def test_the_way_up_to_the_layer_that_fails_is_shown() -> None:
    report = prefixes_of(nn.Linear(64, 32), nn.ReLU(), nn.Linear(30, 10))
    grown = report.facts["prefixes"]
    assert [row["path"] for row in grown["rows"]] == ["0", "1"]
    assert "cannot be multiplied" in grown["failed"]
    assert report.culprits[0].finding.name == "forward-fails"


def test_values_that_are_not_finite_are_counted_where_they_are_born() -> None:
    first, second = nn.Linear(64, 8), nn.Linear(8, 10)
    with torch.no_grad():
        first.bias[3] = torch.inf
    rows = prefixes_of(first, second).facts["prefixes"]["rows"]
    assert [row["not_finite"] for row in rows] == [32, 320]
    assert rows[0]["read_off"] is None


def test_nobody_is_shown_what_was_not_asked_for() -> None:
    assert "prefixes" not in prefixes_of(nn.Linear(64, 10), prefixes=False).facts
