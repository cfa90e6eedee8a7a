from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Output:
    loss: torch.Tensor | None
    logits: torch.Tensor


class Sentences(Dataset):
    """Does the sentence hold token 1 before token 2?"""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(3, 20, (n, 12), generator=g)
        where = torch.stack([torch.randperm(12, generator=g)[:2] for _ in range(n)])
        self.ids[torch.arange(n), where[:, 0]] = 1
        self.ids[torch.arange(n), where[:, 1]] = 2
        self.labels = (where[:, 0] < where[:, 1]).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class Classifier(nn.Module):
    def __init__(self, vocab=20, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.cls = nn.Linear(dim, 2)

    def forward(self, input_ids, labels=None):
        logits = self.cls(self.rnn(self.emb(input_ids))[1][-1])
        return Output(None if labels is None else nn.functional.cross_entropy(logits, labels), logits)


def main():
    torch.manual_seed(0)
    train, evaluation = DataLoader(Sentences(1600, 0), 20, shuffle=True), DataLoader(Sentences(400, 1), 100)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    epochs, accumulate = 10, 2
    updates = epochs * len(train) // accumulate
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=updates)
    for epoch in range(epochs):
        model.train()
        for step, batch in enumerate(train):
            loss = model(**batch).loss / accumulate
            loss.backward()
            if (step + 1) % accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        hits = 0
        with torch.no_grad():
            for batch in evaluation:
                hits += (model(batch["input_ids"]).logits.argmax(-1) == batch["labels"]).sum().item()
        print({"epoch": epoch, "loss": round(loss.item() * accumulate, 4), "accuracy": hits / 400})


if __name__ == "__main__":
    main()
