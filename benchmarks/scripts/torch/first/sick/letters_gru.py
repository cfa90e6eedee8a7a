import random

import torch
from torch import nn

WORDS = ["the", "a", "small", "old", "grey", "quick", "lazy", "fox", "dog", "cat", "bird", "river", "sees", "near"]


def make_text(n_words, seed):
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(n_words))


class LetterModel(nn.Module):
    def __init__(self, vocab, dim=32, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, ids):
        out, _ = self.rnn(self.embed(ids))
        return self.head(out)


class Trainer:
    def __init__(self, model, train_ids, val_ids, seq_len=32, batch_size=32, lr=0.15):
        self.model = model
        self.train_ids, self.val_ids = train_ids, val_ids
        self.seq_len, self.batch_size = seq_len, batch_size
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.loss_fn = nn.CrossEntropyLoss()

    def windows(self, ids):
        n = (len(ids) - 1) // self.seq_len
        x = ids[: n * self.seq_len].view(n, self.seq_len)
        y = ids[1 : n * self.seq_len + 1].view(n, self.seq_len)
        return x, y

    def compute_loss(self, x, y):
        return self.loss_fn(self.model(x).flatten(0, 1), y.flatten())

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        x, y = self.windows(self.train_ids)
        order = torch.randperm(len(x))
        total = 0.0
        for start in range(0, len(order), self.batch_size):
            idx = order[start : start + self.batch_size]
            loss = self.compute_loss(x[idx], y[idx])
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(order)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return self.compute_loss(*self.windows(self.val_ids)).item()

    def fit(self, epochs):
        for epoch in range(epochs):
            train_loss, val_loss = self.train_epoch(), self.validate()
            print(f"[{epoch:02d}] train {train_loss:.3f} val {val_loss:.3f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    train_text, val_text = make_text(5000, 1), make_text(800, 2)
    chars = sorted(set(train_text))
    stoi = {c: i for i, c in enumerate(chars)}
    train_ids = torch.tensor([stoi[c] for c in train_text])
    val_ids = torch.tensor([stoi[c] for c in val_text])
    Trainer(LetterModel(len(chars)), train_ids, val_ids).fit(10)
