"""Adapt a small text encoder, trained to tell 3 groups of help topics apart, to 8 topics of its own."""

from pydoc_data.topics import topics

import torch
import torch.nn as nn
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
torch.set_num_threads(1)

SNIPPET = 48


class Encoder(nn.Module):
    def __init__(self, vocab, dim=48, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.conv1 = nn.Conv1d(dim, dim, 5, padding=2)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.embed(ids)
        h = h + F.gelu(self.conv1(h.transpose(1, 2)).transpose(1, 2))
        h = h + self.fc2(F.gelu(self.fc1(h)))
        return self.classifier(self.norm(h).max(dim=1).values)


def words_of(text):
    return [w for w in "".join(c.lower() if c.isalpha() else " " for c in text).split() if len(w) > 1]


def snippets(groups, stoi):
    xs, ys = [], []
    for label, names in enumerate(groups):
        ids = [stoi.get(w, 0) for name in names for w in words_of(topics[name])]
        for i in range(0, min(len(ids), 12_000) - SNIPPET, SNIPPET // 2):
            xs.append(ids[i : i + SNIPPET])
            ys.append(label)
    x, y = torch.tensor(xs), torch.tensor(ys)
    # every fifth stretch of a text is kept for validation
    block = torch.arange(len(y)) // 20 % 5
    inner = torch.arange(len(y)) % 20
    return (x[block > 0], y[block > 0]), (x[(block == 0) & (inner > 0)], y[(block == 0) & (inner > 0)])


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    x, y = data
    out = model(x)
    model.train()
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def train(model, train_data, val_data, epochs, lr):
    loader = DataLoader(TensorDataset(*train_data), batch_size=32, shuffle=True)
    opt = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for ids, y in loader:
            loss = F.cross_entropy(model(ids), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        val_loss, acc = evaluate(model, val_data)
        print(f"epoch {epoch}: train {total / len(loader):.3f}  val {val_loss:.3f}  acc {acc:.3f}")


sized = sorted(topics, key=lambda name: -len(topics[name]))[:14]
counts = {}
for name in sized:
    for w in words_of(topics[name]):
        counts[w] = counts.get(w, 0) + 1
vocab = ["<unk>"] + sorted(counts, key=lambda w: (-counts[w], w))[:1200]
stoi = {w: i for i, w in enumerate(vocab)}

model = Encoder(len(vocab))
train(model, *snippets([sized[8:10], sized[10:12], sized[12:14]], stoi), epochs=4, lr=2e-3)

model.classifier = nn.Linear(48, 8)
config = LoraConfig(
    r=8,
    lora_alpha=16,
    lora_dropout=0.05,
    target_modules=["fc1", "fc2"],
)
model = get_peft_model(model, config)
model.print_trainable_parameters()
train(model, *snippets([[name] for name in sized[:8]], stoi), epochs=10, lr=3e-3)
