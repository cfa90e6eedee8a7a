"""Turn written dates ("3 March 1987") into ISO ones ("1987-03-03") with an encoder and a decoder."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
PAD, BOS, EOS = 0, 1, 2


def make_pair():
    day, month, year = random.randint(1, 28), random.randint(1, 12), random.randint(1950, 2029)
    style = random.choice(["{d} {m} {y}", "{m} {d}, {y}", "{d} {s} {y}"])
    name = MONTHS[month - 1]
    return style.format(d=day, m=name, s=name[:3], y=year), f"{year}-{month:02d}-{day:02d}"


pairs = sorted({make_pair() for _ in range(4000)})
random.shuffle(pairs)
letters = sorted({c for a, b in pairs for c in a + b})
stoi = {c: i + 3 for i, c in enumerate(letters)}
itos = {i: c for c, i in stoi.items()}
test_pairs, train_pairs = pairs[:200], pairs[200:]


def collate(batch):
    src = [torch.tensor([stoi[c] for c in a] + [EOS]) for a, _ in batch]
    tgt = [torch.tensor([BOS] + [stoi[c] for c in b] + [EOS]) for _, b in batch]
    src = nn.utils.rnn.pad_sequence(src, batch_first=True, padding_value=PAD)
    tgt = nn.utils.rnn.pad_sequence(tgt, batch_first=True, padding_value=PAD)
    return src, tgt


class Seq2Seq(nn.Module):
    def __init__(self, vocab, dim=64, heads=4, layers=1, max_len=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.pos = nn.Parameter(torch.randn(max_len, dim) * 0.1)
        enc_layer = nn.TransformerEncoderLayer(dim, heads, 128, dropout=0.0, batch_first=True, norm_first=True)
        dec_layer = nn.TransformerDecoderLayer(dim, heads, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(enc_layer, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(dec_layer, layers)
        self.out = nn.Linear(dim, vocab)

    def encode(self, src):
        pad = src == PAD
        x = self.embed(src) + self.pos[: src.size(1)]
        return self.encoder(x, src_key_padding_mask=pad), pad

    def decode(self, tgt, memory, memory_pad):
        x = self.embed(tgt) + self.pos[: tgt.size(1)]
        y = self.decoder(x, memory, memory_key_padding_mask=memory_pad)
        return self.out(y)

    def forward(self, src, tgt):
        memory, pad = self.encode(src)
        return self.decode(tgt, memory, pad)

    @torch.no_grad()
    def translate(self, src, steps=11):
        memory, pad = self.encode(src)
        out = torch.full((len(src), 1), BOS)
        for _ in range(steps):
            nxt = self.decode(out, memory, pad)[:, -1].argmax(-1, keepdim=True)
            out = torch.cat([out, nxt], dim=1)
        return out[:, 1:]


def read(ids):
    text = ""
    for i in ids.tolist():
        if i == EOS:
            break
        text += itos.get(i, "?")
    return text


def evaluate(model):
    model.eval()
    src, tgt = collate(test_pairs)
    with torch.no_grad():
        logits = model(src, tgt[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), tgt[:, 1:], ignore_index=PAD).item()
    right = sum(read(o) == b for o, (_, b) in zip(model.translate(src), test_pairs))
    model.train()
    return loss, right / len(test_pairs)


model = Seq2Seq(vocab=len(letters) + 3)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    random.shuffle(train_pairs)
    total, batches = 0.0, 0
    for i in range(0, len(train_pairs), 64):
        src, tgt = collate(train_pairs[i : i + 64])
        logits = model(src, tgt[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), tgt[:, 1:], ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, batches = total + loss.item(), batches + 1
    test_loss, exact = evaluate(model)
    print(f"epoch {epoch}: train {total / batches:.4f}  test {test_loss:.4f}  exact {exact:.3f}")

src, _ = collate(test_pairs[:3])
for (a, b), o in zip(test_pairs, model.translate(src)):
    print(a, "->", read(o), "expected", b)
