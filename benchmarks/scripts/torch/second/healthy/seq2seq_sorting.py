"""An encoder and an attending decoder learn to sort numbers. Lengths differ, so batches are padded."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, SOS, EOS, OFFSET, NUMBERS = 0, 1, 2, 3, 20


class SortingTask(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [[rng.randrange(NUMBERS) for _ in range(rng.randint(3, 8))] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = [v + OFFSET for v in self.rows[i]]
        return torch.tensor(row), torch.tensor([SOS, *sorted(row), EOS])


def collate(batch):
    src, tgt = zip(*batch)
    lengths = torch.tensor([len(s) for s in src])
    return pad_sequence(src, batch_first=True), lengths, pad_sequence(tgt, batch_first=True)


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.bridge(torch.cat([h[0], h[1]], dim=1)))


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.query = nn.Linear(hidden, 2 * hidden, bias=False)
        self.cell = nn.GRUCell(emb + 2 * hidden, hidden)
        self.out = nn.Linear(3 * hidden, vocab)

    def forward(self, token, state, memory, mask):
        scores = (memory @ self.query(state).unsqueeze(-1)).squeeze(-1) / memory.size(-1) ** 0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=1)
        context = (weights.unsqueeze(1) @ memory).squeeze(1)
        state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
        return self.out(torch.cat([state, context], dim=1)), state


class Seq2Seq(nn.Module):
    def __init__(self, vocab=NUMBERS + OFFSET, emb=32, hidden=64):
        super().__init__()
        self.encoder, self.decoder = Encoder(vocab, emb, hidden), Decoder(vocab, emb, hidden)

    def forward(self, src, lengths, tgt, teacher_forcing=0.8):
        memory, state = self.encoder(src, lengths)
        mask, token, outputs = src != PAD, tgt[:, 0], []
        for t in range(1, tgt.size(1)):
            logits, state = self.decoder(token, state, memory, mask)
            outputs.append(logits)
            token = tgt[:, t] if random.random() < teacher_forcing else logits.argmax(1)
        return torch.stack(outputs, dim=1)


def evaluate(model, loader):
    model.eval()
    total = exact = 0
    with torch.no_grad():
        for src, lengths, tgt in loader:
            logits = model(src, lengths, tgt, teacher_forcing=0.0)
            gold = tgt[:, 1:]
            total += F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=PAD).item() * len(src)
            exact += ((logits.argmax(-1) == gold) | (gold == PAD)).all(dim=1).sum().item()
    return total / len(loader.dataset), exact / len(loader.dataset)


def main(epochs=8):
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(SortingTask(4000, seed=1), batch_size=64, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(SortingTask(400, seed=2), batch_size=200, collate_fn=collate)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(epochs):
        model.train()
        losses = []
        for src, lengths, tgt in train_loader:
            logits = model(src, lengths, tgt)
            loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        test, exact = evaluate(model, test_loader)
        print(f"epoch {epoch}: train {sum(losses) / len(losses):.4f}  test {test:.4f}  exact {exact:.3f}")


if __name__ == "__main__":
    main()
