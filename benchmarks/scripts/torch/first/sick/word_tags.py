import random

import torch
from torch import nn
from torch.utils.data import DataLoader

NOUNS = ["cat", "dog", "tree", "river", "stone", "cloud", "house", "bird"]
VERBS = ["sees", "finds", "likes", "follows", "hears", "draws"]
SMALL = ["the", "a", "every", "some", "under", "near"]
WORDS = NOUNS + VERBS + SMALL
SPECIAL = ["<pad>", "<unk>"]
stoi = {w: i for i, w in enumerate(SPECIAL + WORDS)}


def sentence(rng):
    np = [(rng.choice(SMALL), 0), (rng.choice(NOUNS), 1)]
    vp = [(rng.choice(VERBS), 2), (rng.choice(SMALL), 0), (rng.choice(NOUNS), 1)]
    tail = [(rng.choice(SMALL), 0), (rng.choice(NOUNS), 1)] if rng.random() < 0.5 else []
    words = np + vp + tail
    return [stoi[w] for w, _ in words], [t for _, t in words]


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([i + [stoi["<pad>"]] * (width - len(i)) for i, _ in batch])
    tags = torch.tensor([t + [-100] * (width - len(t)) for _, t in batch])
    return ids, tags


class WordTagger(nn.Module):
    def __init__(self, n_words, n_tags, dim=16):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, n_tags)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


torch.manual_seed(0)
rng = random.Random(0)
data = [sentence(rng) for _ in range(900)]
train_loader = DataLoader(data[:700], batch_size=20, shuffle=True, collate_fn=collate)
val_loader = DataLoader(data[700:], batch_size=100, collate_fn=collate)
model = WordTagger(len(WORDS), n_tags=3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for ids, tags in train_loader:
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    good = total = 0
    with torch.no_grad():
        for ids, tags in val_loader:
            keep = tags != -100
            good += (model(ids).argmax(-1)[keep] == tags[keep]).sum().item()
            total += keep.sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} tag accuracy {good / total:.4f}")
