import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ReluRNN(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.w_ih = nn.Linear(n_in, hidden)
        self.w_hh = nn.Parameter(torch.eye(hidden) * 1.6)
        self.out = nn.Linear(hidden, n_out)
        nn.init.normal_(self.w_ih.weight, std=0.05)

    def forward(self, x):
        h = torch.zeros(len(x), self.w_hh.shape[0])
        for t in range(x.shape[1]):
            h = torch.relu(self.w_ih(x[:, t]) + h @ self.w_hh)
        return self.out(h)


def marked_sum(n, length, seed):
    """Sum of the values whose mark is set."""
    g = torch.Generator().manual_seed(seed)
    values = torch.rand(n, length, generator=g)
    marks = torch.randint(0, 2, (n, length), generator=g).float()
    total = (values * marks).sum(1, keepdim=True)
    return TensorDataset(torch.stack([values, marks], dim=-1), (total - length / 4) / (0.104 * length) ** 0.5)


torch.manual_seed(1)
train_loader = DataLoader(marked_sum(2000, 30, 0), batch_size=50, shuffle=True)
val_loader = DataLoader(marked_sum(500, 30, 1), batch_size=250)
model = ReluRNN(2, 32, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for epoch in range(20):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = sum(criterion(model(x), y).item() for x, y in val_loader) / len(val_loader)
    print(f"epoch {epoch + 1:2d}: train mse {total / len(train_loader):.5g}, val mse {val:.5g}")
