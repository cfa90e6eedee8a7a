import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

IGNORE = -100


def make_sequence(rng):
    """Tag = is the symbol equal to the one two steps before?"""
    n = rng.randint(6, 14)
    s = [rng.randint(1, 4) for _ in range(n)]
    tags = [0, 0] + [int(s[i] == s[i - 2]) for i in range(2, n)]
    return torch.tensor(s), torch.tensor(tags)


def collate(batch):
    seqs, tags = zip(*batch, strict=True)
    return pad_sequence(seqs, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=IGNORE)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 12, padding_idx=0)
        self.gru = nn.GRU(12, 32, batch_first=True)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    data = [make_sequence(rng) for _ in range(1500)]
    train_loader = DataLoader(data[:1200], batch_size=30, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(data[1200:], batch_size=100, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss(ignore_index=IGNORE)
    for epoch in range(8):
        model.train()
        total = 0.0
        for x, t in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x).flatten(0, 1), t.flatten())
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        good = count = 0
        with torch.no_grad():
            for x, t in val_loader:
                keep = t != IGNORE
                good += (model(x).argmax(-1)[keep] == t[keep]).sum().item()
                count += keep.sum().item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} tag acc {good / count:.4f}")


if __name__ == "__main__":
    main()
