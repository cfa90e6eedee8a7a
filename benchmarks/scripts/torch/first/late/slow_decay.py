import random

import torch
from torch import nn

NAMES = ["ber", "lin", "do", "ra", "ma", "ti", "ko", "ven", "sa", "lu", "pri", "no", "gor", "el", "hus", "mir"]


def make_words(n, seed):
    rng = random.Random(seed)
    return ["".join(rng.choice(NAMES) for _ in range(rng.randint(2, 4))) for _ in range(n)]


class NextLetter(nn.Module):
    def __init__(self, vocab, context=4, dim=12, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.net = nn.Sequential(nn.Linear(context * dim, hidden), nn.Tanh(), nn.Linear(hidden, vocab))

    def forward(self, x):
        return self.net(self.emb(x).flatten(1))


class Trainer:
    def __init__(self, model, train, val, lr=0.05, decay_rate=0.998):
        self.model, self.train, self.val = model, train, val
        self.lr_now, self.decay_rate, self.steps = lr, decay_rate, 0
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)

    def epoch(self):
        self.model.train()
        x, y = self.train
        total = 0.0
        for idx in torch.randperm(len(x)).split(16):
            loss = nn.functional.cross_entropy(self.model(x[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.lr_now *= self.decay_rate
            for group in self.opt.param_groups:
                group["lr"] = self.lr_now
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return nn.functional.cross_entropy(self.model(self.val[0]), self.val[1]).item()


def dataset(words, stoi, context=4):
    xs, ys = [], []
    for w in words:
        ctx = [0] * context
        for c in w + ".":
            xs.append(ctx)
            ys.append(stoi[c])
            ctx = ctx[1:] + [stoi[c]]
    return torch.tensor(xs), torch.tensor(ys)


if __name__ == "__main__":
    torch.manual_seed(3)
    letters = "." + "".join(sorted(set("".join(NAMES))))
    stoi = {c: i for i, c in enumerate(letters)}
    trainer = Trainer(NextLetter(len(letters)), dataset(make_words(2000, 0), stoi), dataset(make_words(300, 1), stoi))
    for e in range(7):
        train_loss = trainer.epoch()
        print(f"epoch {e} train {train_loss:.4f} val {trainer.validate():.4f} lr {trainer.lr_now:.2e}")
