import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH = 400, 10


class PairScorer(nn.Module):
    """Do the two halves of the sequence belong to the same group of tokens?"""

    def __init__(self, vectors):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, ids):
        e = self.embed(ids)
        a, b = e[:, : LENGTH // 2].mean(1), e[:, LENGTH // 2 :].mean(1)
        return self.scale * (a * b).sum(-1) + self.bias


def make_pairs(n, seed):
    g = torch.Generator().manual_seed(seed)
    groups = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(0)).view(8, -1)
    y = torch.randint(0, 2, (n,), generator=g)
    first = torch.randint(0, 8, (n,), generator=g)
    second = torch.where(y == 1, first, (first + torch.randint(1, 8, (n,), generator=g)) % 8)
    cols = torch.randint(0, groups.shape[1], (n, LENGTH), generator=g)
    rows = torch.cat([first[:, None].expand(-1, LENGTH // 2), second[:, None].expand(-1, LENGTH // 2)], 1)
    return TensorDataset(groups[rows, cols], y.float())


def main():
    torch.manual_seed(28)
    train_loader = DataLoader(make_pairs(3000, 1), batch_size=50, shuffle=True)
    val_loader = DataLoader(make_pairs(600, 2), batch_size=200)
    model = PairScorer(torch.randn(VOCAB, 16) * 0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(10):
        model.train()
        total = 0.0
        for ids, y in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(ids), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum(((model(i) > 0).float() == t).sum().item() for i, t in val_loader) / 600
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
