import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, d_query, d_doc, dim=16):
        super().__init__()
        self.query_tower = nn.Sequential(nn.Linear(d_query, 32), nn.ReLU(), nn.Linear(32, dim))
        self.doc_tower = nn.Sequential(nn.Linear(d_doc, 32), nn.ReLU(), nn.Linear(32, dim))
        self.temperature = 0.1

    @staticmethod
    def unit_rows(matrix):
        matrix = np.asarray(matrix)
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)

    def forward(self, query, doc):
        q = torch.from_numpy(self.unit_rows(self.query_tower(query).data))
        d = F.normalize(self.doc_tower(doc), dim=1)
        return q @ d.T / self.temperature


def pairs(n, seed):
    g = torch.Generator().manual_seed(seed)
    mix = torch.Generator().manual_seed(123)
    topic = torch.randn(n, 10, generator=g)
    a, b = torch.randn(10, 20, generator=mix) / 3.2, torch.randn(10, 14, generator=mix) / 3.2
    query = torch.tanh(topic @ a) * 1.4 + 0.3 * torch.randn(n, 20, generator=g)
    doc = torch.tanh(topic @ b) * 1.4 + 0.3 * torch.randn(n, 14, generator=g)
    return query, doc


def recall_at_1(model, query, doc):
    model.eval()
    with torch.no_grad():
        sims = model(query, doc)
    return (sims.argmax(1) == torch.arange(len(sims))).float().mean().item()


torch.manual_seed(50)
query, doc = pairs(2560, 0)
val_query, val_doc = pairs(128, 1)
model = TwoTower(20, 14)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    losses = []
    for idx in torch.randperm(len(query)).split(64):
        logits = model(query[idx], doc[idx])
        loss = F.cross_entropy(logits, torch.arange(len(idx)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    r = recall_at_1(model, val_query, val_doc)
    print(f"epoch {epoch:2d} loss {sum(losses) / len(losses):.3f} recall@1 {r:.3f}")
