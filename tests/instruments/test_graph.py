"""A picture that shows how a model is wired, at a size that a person reads."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

import sleuth
from sleuth.instruments.graph import Graph
from tests.instruments.models import Language, Residual, Tagger


def named(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.vertices[a].title, graph.vertices[b].title) for a, b in graph.edges}


def test_a_residual_connection_is_a_second_line_into_the_sum() -> None:
    graph = sleuth.graph(nn.Sequential(Residual(1)), (2, 1, 8, 8))
    into = [graph.vertices[a].title for a, b in graph.edges if graph.vertices[b].title == "add"]
    assert sorted(into) == ["bn2", "shortcut"]
    assert sum(v.title == "relu" for v in graph.vertices) == 2, "a module that is called twice stands twice"


def test_layers_that_repeat_are_one_box_which_is_drawn_open() -> None:
    graph = sleuth.graph(Language(12), (2, 6), dtype="int64")
    assert {v.within[1] for v in graph.vertices if len(v.within) > 1} == {"12 × Layer"}
    assert ("norm1", "qkv") in named(graph)
    assert ("places", "add") in named(graph), "what does not depend on the input is drawn too"
    assert graph.operations > 100
    assert len(graph.vertices) < 20


def test_an_unrolled_loop_is_one_box() -> None:
    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.zeros(x.shape[0], 4)
            for step in range(x.shape[1]):
                hidden = self.cell(x[:, step], hidden)
            return hidden

    graph = sleuth.graph(Unrolled(), (2, 30, 3))
    assert [v.title for v in graph.vertices] == ["input", "30 × cell", "output"]


def test_towers_that_stand_side_by_side_are_not_told_as_one_after_another() -> None:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.towers = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)) for _ in range(3)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([tower(x) for tower in self.towers], dim=1)

    assert "3 × Sequential side by side" in sleuth.graph(Towers(), (2, 3)).svg


@pytest.mark.parametrize("most", [5, 15, 200])
def test_no_more_boxes_are_seen_than_asked_for(most: int) -> None:
    graph = sleuth.graph(Residual(6), (2, 1, 8, 8), most=most)
    assert len(graph.vertices) - 2 <= max(most, 3)


def test_boxes_do_not_overlap_and_stay_inside_the_one_around_them() -> None:
    for model, x, dtype in ((Residual(3), (2, 1, 8, 8), None), (Language(3), (2, 6), "int64"), (Tagger(), (2, 4, 6), None)):
        waiting = [sleuth.graph(model, x, dtype=dtype, most=200).box]
        while waiting:
            box = waiting.pop()
            waiting += box.boxes
            for i, a in enumerate(box.boxes):
                assert a.x >= 0
                assert a.x + a.width <= box.width + 0.01
                assert a.y + a.height <= box.height + 0.01
                for b in box.boxes[i + 1 :]:
                    beside = a.x + a.width <= b.x or b.x + b.width <= a.x
                    assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y


def test_the_picture_is_sound_xml_and_names_are_text() -> None:
    model = nn.Sequential()
    model.add_module("</text><script>alert(1)", nn.Linear(2, 2))
    model.add_module("end", nn.Linear(2, 2))
    svg = sleuth.graph(model, (1, 2)).svg
    assert "<script" not in svg
    assert any("script" in (e.text or "") for e in ElementTree.fromstring(svg).iter())
    assert not re.search(r"https?://(?!www\.w3\.org)", svg)


def test_inputs_carry_their_names_and_failures_their_cure() -> None:
    graph = sleuth.graph(nn.Bilinear(3, 4, 5), ((2, 3), (2, 4)))
    assert [v.title for v in graph.vertices][:2] == ["input1", "input2"]
    assert json.loads(json.dumps(graph.to_dict()))["edges"]
    assert graph.plot().axes
    with pytest.raises(sleuth.UnusableInput, match="takes 3 features"):
        sleuth.graph(nn.Sequential(nn.Linear(3, 4)), (2, 5))
