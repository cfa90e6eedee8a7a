import argparse
from pydoc_data.topics import topics

import torch
import torch.nn as nn


class Corpus:
    def __init__(self, limit):
        text = " ".join(topics[k] for k in sorted(topics, reverse=True))
        text = "".join(c for c in text if c.isascii())[:limit]
        self.chars = sorted(set(text))
        index = {c: i for i, c in enumerate(self.chars)}
        ids = torch.tensor([index[c] for c in text])
        cut = int(len(ids) * 0.9)
        self.train, self.valid = ids[:cut], ids[cut:]
        self.index = index

    def batch(self, split, batch_size, seq_len):
        ids = self.train if split == "train" else self.valid
        starts = torch.randint(0, len(ids) - seq_len - 1, (batch_size,))
        rows = torch.stack([ids[s : s + seq_len + 1] for s in starts])
        return rows[:, :-1], rows[:, 1:]


class CharLSTM(nn.Module):
    def __init__(self, vocab, dim=32, hidden=96, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, num_layers=layers)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x):
        out, _ = self.lstm(self.embed(x))
        return self.head(out)


@torch.no_grad()
def validate(model, corpus, args, criterion):
    model.eval()
    losses = []
    for _ in range(10):
        x, y = corpus.batch("valid", args.batch_size, args.seq_len)
        logits = model(x)
        losses.append(criterion(logits.reshape(-1, logits.size(-1)), y.reshape(-1)).item())
    model.train()
    return sum(losses) / len(losses)


@torch.no_grad()
def write(model, corpus, prompt="The ", n=100):
    model.eval()
    out = prompt
    for _ in range(n):
        ids = torch.tensor([[corpus.index[c] for c in out[-48:]]])
        logits = model(ids)
        out += corpus.chars[torch.multinomial(torch.softmax(logits[0, -1], dim=-1), 1).item()]
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seq-len", type=int, default=48)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--lr", type=float, default=4e-3)
    args = parser.parse_args()

    torch.manual_seed(21)
    torch.set_num_threads(1)
    corpus = Corpus(150_000)
    model = CharLSTM(len(corpus.chars))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=200, gamma=0.5)
    criterion = nn.CrossEntropyLoss()

    total = 0.0
    for step in range(1, args.steps + 1):
        x, y = corpus.batch("train", args.batch_size, args.seq_len)
        logits = model(x)
        loss = criterion(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        if step % 100 == 0:
            print(f"step {step}: train {total / 100:.4f}  valid {validate(model, corpus, args, criterion):.4f}")
            total = 0.0
    print(write(model, corpus))


if __name__ == "__main__":
    main()
