import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SessionModel(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(21, dim, padding_idx=0)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, 2)

    def forward(self, events):
        valid = events != 0
        q, k, v = self.qkv(self.embed(events)).chunk(3, dim=-1)
        att = (q @ k.transpose(1, 2) / k.shape[-1] ** 0.5).masked_fill(~valid.unsqueeze(1), float("-inf"))
        h = att.softmax(dim=-1) @ v
        w = valid.unsqueeze(-1).float()
        pooled = (h * w).sum(1) / w.sum(1).clamp(min=1)
        return self.out(torch.relu(pooled))


def sessions(n, seed, length=10):
    g = torch.Generator().manual_seed(seed)
    events = torch.randint(1, 21, (n, length), generator=g)
    size = torch.randint(2, length + 1, (n, 1), generator=g)
    events = events * (torch.arange(length) < size)
    y = (((events > 0) & (events <= 8)).sum(1) * 2 > size.squeeze(1)).long()
    return events, y


torch.manual_seed(0)
events, label = sessions(30_000, 0)
events[9_137], label[9_137] = 0, 0
val_events, val_label = sessions(1000, 1)
loader = DataLoader(TensorDataset(events, label), batch_size=10, shuffle=True)
model = SessionModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
step = 0
for x, y in loader:
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 300 == 0:
        model.eval()
        with torch.no_grad():
            acc = (model(val_events).argmax(1) == val_label).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f} val acc {acc:.3f}")
