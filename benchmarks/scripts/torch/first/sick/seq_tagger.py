import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ParityRuns(Dataset):
    """Tag each position with the parity of the ones seen so far in the last three positions."""

    def __init__(self, n, length, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(0, 2, (n, length), generator=g)
        padded = torch.cat([torch.zeros(n, 2, dtype=torch.long), self.x], dim=1)
        self.y = (padded[:, 2:] + padded[:, 1:-1] + padded[:, :-2]) % 2

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(2, 8)
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.out(h)


def evaluate(model, loader):
    model.eval()
    good = total = 0
    for x, y in loader:
        pred = model(x).argmax(-1)
        good += (pred == y).sum().item()
        total += y.numel()
    return good / total


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(ParityRuns(1200, 24, 0), batch_size=32, shuffle=True)
    val_loader = DataLoader(ParityRuns(300, 24, 1), batch_size=100)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        model.train()
        for x, y in train_loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x).reshape(-1, 2), y.reshape(-1))
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}, tag accuracy {evaluate(model, val_loader):.4f}")
