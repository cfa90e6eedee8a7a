"""An index that is not there: which one, in which table, under the user's names."""

import pytest
import torch
from torch import nn
from torch.nn import functional as fn

from tests.script.crashing import finding, report_of_watch, report_without_watch

SCORES = torch.rand(5, 4)
CHOICE = torch.tensor([1, 9, 0, 3, 2])


class Words(nn.Module):
    def __init__(self, rows: int = 10) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(rows, 8), nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids).mean(1))


def test_an_id_without_a_row_is_the_illness_also_when_nobody_watched() -> None:
    report = report_without_watch(Words(), torch.tensor([[1, 2], [12, 0]]))
    assert report.culprits[0].finding.name == "token-out-of-vocabulary"
    found = report.culprits[0].finding
    assert found.summary == "table has 10 rows (ids 0 to 9), but ids holds the id 12"
    assert found.location.text == "return self.head(self.table(ids).mean(1))"


def test_an_id_that_comes_late_is_the_illness_although_the_first_batches_were_fine() -> None:
    def loop(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for step in range(40):
            ids = torch.randint(10, (32, 6))
            if step == 39:
                ids[3, 2] = 10
            optimiser.zero_grad()
            fn.cross_entropy(model(ids), ids[:, 0] % 4).backward()
            optimiser.step()

    report = report_of_watch(loop, Words())
    assert report.culprits[0].finding.name == "token-out-of-vocabulary", report.to_text()
    assert [s.name for s in report.culprits[0].symptoms] == ["forward-fails"]
    assert "while step 39 was in the forward pass" in report.notes[0]


class Positions(Words):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(torch.arange(ids.shape[1])))


def test_a_sequence_longer_than_its_positions_is_no_matter_of_the_vocabulary() -> None:
    report = report_without_watch(Positions(16), torch.ones(2, 20).long())
    assert report.culprits[0].finding.name == "forward-fails"
    assert "a sequence of 20" in report.culprits[0].finding.summary
    assert "x[:, :16]" in report.culprits[0].finding.fix


def test_a_table_without_a_layer_is_named_as_the_user_does() -> None:
    def look_up() -> torch.Tensor:
        vectors, ids = torch.rand(5, 3), torch.tensor([5])
        return fn.embedding(ids, vectors)

    assert "vectors has 5 rows" in finding(report_without_watch(look_up), "token-out-of-vocabulary").summary


def test_a_class_beyond_the_outputs_is_the_illness() -> None:
    def loss() -> torch.Tensor:
        labels = torch.tensor([1, 2, 3, 4, 1])
        return fn.cross_entropy(SCORES, labels)

    found = report_without_watch(loss).culprits[0].finding
    assert found.name == "target-out-of-range"
    assert found.summary == "labels runs from 1 to 4 (1 of 5 are outside), but the output has 4: classes 0 to 3"
    assert "y = y - 1" in found.fix


def test_an_ignored_class_is_not_counted() -> None:
    def loss() -> torch.Tensor:
        labels = torch.tensor([0, -100, 3, 4, 7])
        return fn.cross_entropy(SCORES, labels)

    found = finding(report_without_watch(loss), "target-out-of-range")
    assert "labels runs from 0 to 7 (2 of 4" in found.summary


def _gathered() -> torch.Tensor:
    return SCORES.gather(1, CHOICE[:, None])


def _picked() -> torch.Tensor:
    return SCORES[torch.arange(5), CHOICE]


def _selected() -> torch.Tensor:
    return torch.index_select(SCORES, 1, CHOICE)


def _written() -> None:
    counts = torch.zeros(4)
    counts[CHOICE] = 1


@pytest.mark.parametrize(
    ("act", "table", "index", "axis"),
    [
        (_picked, "SCORES", "CHOICE holds 9 (1 of 5", 1),
        (_selected, "SCORES", "CHOICE holds 9 (1 of 5", 1),
        (_written, "counts", "CHOICE holds 9 (1 of 5", 0),
        (_gathered, "SCORES", "index 9", 1),
    ],
)
def test_an_index_is_told_with_its_table_and_axis(act, table: str, index: str, axis: int) -> None:
    found = finding(report_without_watch(act), "forward-fails")
    assert f"from 0 to 3 on axis {axis} of {table}" in found.summary
    assert index in found.summary
    assert found.location is not None


def test_a_plain_number_in_a_loop_is_named() -> None:
    def loop() -> None:
        rows = torch.rand(5)
        for i in range(7):
            rows[i]

    found = finding(report_without_watch(loop), "forward-fails")
    assert "of rows and gets i holds 5" in found.summary


def test_a_list_that_is_too_short_is_the_users_own_affair() -> None:
    report = report_without_watch(lambda: [1][3])
    assert not report.findings
    assert "list index out of range" in report.notes[0]
