import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class SensorNet(nn.Module):
    def __init__(self, n_sensors, hidden=64):
        super().__init__()
        self.encode = nn.Linear(n_sensors, hidden)
        self.act = nn.GELU()
        self.mix = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.mix(self.encode(x))
        return self.head(h).squeeze(-1)


def make_dataset(n=2400):
    x = torch.randn(n, 5)
    y = x[:, 0] * x[:, 1] + 0.7 * (x[:, 2].abs() - 0.8) + 0.05 * torch.randn(n)
    return TensorDataset(x, (y - y.mean()) / y.std())


class Trainer:
    def __init__(self, model, dataset):
        train, val = random_split(dataset, [2000, 400])
        self.train_loader = DataLoader(train, batch_size=40, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=200)
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
        self.loss_fn = nn.MSELoss()

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            self.model.train()
            total = 0.0
            for x, y in self.train_loader:
                loss = self.loss_fn(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch:02d} train {total / len(self.train_loader):.4f} val {self.validate():.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return sum(self.loss_fn(self.model(x), y).item() for x, y in self.val_loader) / len(self.val_loader)


if __name__ == "__main__":
    torch.manual_seed(61)
    Trainer(SensorNet(5), make_dataset()).fit(15)
