import random

import torch
from torch import nn

EPOCHS = 50
HIDDEN = 192
VOWELS, CONSONANTS = "aeiou", "bdfgklmnprst"


def invent(rng):
    parts = [rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 4))]
    return "".join(parts) + (rng.choice("nrs") if rng.random() < 0.4 else "")


class WordLM(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb = nn.Embedding(vocab, 24)
        self.rnn = nn.GRU(24, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def encode(words, stoi):
    rows = [[stoi["<"]] + [stoi[c] for c in w] + [stoi[">"]] for w in words]
    width = 11
    return torch.tensor([r + [0] * (width - len(r)) for r in rows])


def loss_of(model, rows):
    logits = model(rows[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=0)


def main():
    rng = random.Random(2)
    torch.manual_seed(2)
    words = sorted({invent(rng) for _ in range(430)})
    rng.shuffle(words)
    stoi = {c: i for i, c in enumerate("_<>" + "".join(sorted(VOWELS + CONSONANTS)))}
    rows = encode(words, stoi)
    train, val = rows[:240], rows[240:]
    model = WordLM(len(stoi))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(train)).split(24):
            loss = loss_of(model, train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            val_loss = loss_of(model, val).item()
        if epoch % 5 == 4 or epoch == EPOCHS - 1:
            print(f"epoch {epoch + 1:2d} train {total / len(train):.4f} val {val_loss:.4f}")


if __name__ == "__main__":
    main()
