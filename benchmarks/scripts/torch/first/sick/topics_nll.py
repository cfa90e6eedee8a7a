import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TOPICS = {
    "sea": ["ship", "wave", "salt", "harbour", "sail", "fish", "tide"],
    "wood": ["tree", "leaf", "moss", "deer", "path", "pine", "root"],
    "town": ["street", "tram", "shop", "crowd", "lamp", "bridge", "clock"],
    "farm": ["barn", "hay", "cow", "plough", "field", "hen", "gate"],
}
COMMON = ["the", "a", "old", "small", "near", "under", "and", "with", "of", "in"]
VOCAB = {w: i for i, w in enumerate(COMMON + [w for ws in TOPICS.values() for w in ws])}


class Sentences(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            label = rng.randrange(len(TOPICS))
            own = list(TOPICS.values())[label]
            every = [w for ws in TOPICS.values() for w in ws]
            words = [rng.choice(own if rng.random() < 0.25 else rng.choice([COMMON, every])) for _ in range(12)]
            self.items.append((torch.tensor([VOCAB[w] for w in words]), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(len(VOCAB), 24, mode="mean")
        self.hidden = nn.Linear(24, 24)
        self.out = nn.Linear(24, len(TOPICS))

    def forward(self, ids):
        h = torch.relu(self.hidden(self.emb(ids)))
        return self.out(h)


torch.manual_seed(0)
train_loader = DataLoader(Sentences(1600, 0), batch_size=32, shuffle=True)
val_loader = DataLoader(Sentences(400, 1), batch_size=200)
model = BagOfWords()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    losses = []
    for ids, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(ids), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        acc = sum((model(i).argmax(1) == t).sum().item() for i, t in val_loader) / 400
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} val acc {acc:.3f}")
