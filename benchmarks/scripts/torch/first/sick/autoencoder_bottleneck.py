import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader


class AutoEncoder(nn.Module):
    def __init__(self, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code))
        self.decoder = nn.Sequential(nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64))
        self.codes = None

    def forward(self, x):
        z = self.encoder(x)
        self.codes = z.detach()
        recon = self.decoder(self.codes)
        return recon


def main():
    torch.manual_seed(33)
    data = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
    data = data[torch.randperm(len(data))]
    train_loader = DataLoader(data[:1500], batch_size=50, shuffle=True)
    val = data[1500:]
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.MSELoss()
    baseline = criterion(data[:1500].mean(0).expand_as(val), val).item()
    for epoch in range(20):
        model.train()
        total = 0.0
        for x in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), x)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val_loss = criterion(model(val), val).item()
        if epoch % 4 == 3:
            avg = total / len(train_loader)
            print(f"epoch {epoch + 1}: train {avg:.4f} val {val_loss:.4f} (mean image {baseline:.4f})")


if __name__ == "__main__":
    main()
