"""A graph network that classifies the nodes of one graph: samples mix by design, one batch is the whole graph."""

import numpy as np
import torch
from torch import nn, optim

from sleuth import Subject
from tests.material import wine


class GraphNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(13, 32)
        self.second = nn.Linear(32, 3)

    def forward(self, nodes: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(adjacency @ self.first(nodes))
        return adjacency @ self.second(hidden)


def build() -> Subject:
    x, y = wine()
    order = np.random.default_rng(0).permutation(len(x))
    nodes, labels = torch.as_tensor(x[order]), torch.as_tensor(y[order])
    near = torch.cdist(nodes, nodes).topk(6, largest=False).indices
    adjacency = torch.zeros(len(nodes), len(nodes)).scatter_(1, near, 1.0)
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    model = GraphNet()
    return Subject(model, [(nodes, adjacency, labels)], nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2))
