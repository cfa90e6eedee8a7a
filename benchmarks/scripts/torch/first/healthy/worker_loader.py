import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class NoisyDigits(Dataset):
    def __init__(self, images, labels, augment):
        self.images, self.labels, self.augment = images, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.augment:
            img = img + 0.1 * torch.randn(img.shape)
        return img, self.labels[i]


def main():
    torch.manual_seed(2)
    d = load_digits()
    order = torch.randperm(len(d.target))
    x = torch.tensor(d.data, dtype=torch.float32)[order] / 8 - 1
    y = torch.tensor(d.target)[order]
    train_loader = DataLoader(NoisyDigits(x[:1400], y[:1400], True), batch_size=50, shuffle=True, num_workers=2)
    val_loader = DataLoader(NoisyDigits(x[1400:], y[1400:], False), batch_size=200)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader) / 397
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f} val acc {acc:.4f}")


if __name__ == "__main__":
    main()
