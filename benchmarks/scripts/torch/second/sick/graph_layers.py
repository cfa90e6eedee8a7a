"""Node classification with graph convolutions written as matrix products."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
torch.set_num_threads(1)


def make_graph(n=900, n_features=8, degree=6):
    """Nodes live in the plane and link to near ones; the class is the quadrant pattern of their surroundings."""
    place = torch.rand(n, 2) * 2 - 1
    nearest = torch.cdist(place, place).topk(degree + 1, largest=False).indices
    A = torch.zeros(n, n)
    A[torch.arange(n).repeat_interleave(degree + 1), nearest.flatten()] = 1.0
    A = torch.maximum(A, A.T)
    labels = ((place[:, 0] > 0) ^ (place[:, 1] > 0)).long() + 2 * (place.norm(dim=1) > 0.8).long()
    mixing = torch.randn(2, n_features)
    X = place @ mixing + 0.5 * torch.randn(n, n_features)
    X = (X - X.mean(0)) / X.std(0)
    return A, X, labels


def normalise(A):
    A = A.clone()
    A.fill_diagonal_(1.0)
    d = A.sum(dim=1).pow(-0.5)
    return d[:, None] * A * d[None, :]


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, X, A_hat):
        return A_hat @ (X @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, n_in, hidden, n_classes, dropout=0.1):
        super().__init__()
        self.conv1 = GraphConv(n_in, hidden)
        self.conv2 = GraphConv(hidden, hidden)
        self.conv3 = GraphConv(hidden, n_classes)
        self.dropout = dropout

    def forward(self, X, A_hat):
        h = self.conv1(X, A_hat)
        h = F.dropout(h, self.dropout, training=self.training)
        h = self.conv2(h, A_hat)
        h = F.dropout(h, self.dropout, training=self.training)
        return self.conv3(h, A_hat)


def accuracy(logits, labels, mask):
    return (logits[mask].argmax(dim=1) == labels[mask]).float().mean().item()


A, X, labels = make_graph()
A_hat = normalise(A)
order = torch.randperm(len(labels))
train_mask = torch.zeros(len(labels), dtype=torch.bool)
val_mask = torch.zeros(len(labels), dtype=torch.bool)
train_mask[order[:600]] = True
val_mask[order[600:]] = True

model = GCN(X.size(1), hidden=64, n_classes=4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(1, 201):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(X, A_hat)[train_mask], labels[train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 25 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(X, A_hat)
        print(
            f"epoch {epoch}: loss {loss.item():.4f}  train {accuracy(logits, labels, train_mask):.3f}"
            f"  val {accuracy(logits, labels, val_mask):.3f}"
        )
