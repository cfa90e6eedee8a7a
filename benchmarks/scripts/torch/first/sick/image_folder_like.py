import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ImageSet(Dataset):
    def __init__(self, images, labels, train):
        self.images, self.labels, self.train = images, labels, train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i].float() / 255.0
        if self.train:
            shift = int(torch.randint(-1, 2, (1,)))
            img = torch.roll(img, shift, dims=-1)
            img = (img - 0.305) / 0.376
        else:
            img = img.clamp(0.0, 1.0)
        return img.unsqueeze(0), self.labels[i]


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1)
        self.c2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def main(args):
    torch.manual_seed(args.seed)
    d = load_digits()
    images = torch.tensor(d.images * (255 / 16)).round().to(torch.uint8)
    labels = torch.tensor(d.target)
    order = torch.randperm(len(labels))
    tr, va = order[:1400], order[1400:]
    train_loader = DataLoader(ImageSet(images[tr], labels[tr], True), batch_size=50, shuffle=True)
    val_loader = DataLoader(ImageSet(images[va], labels[va], False), batch_size=200)
    net = SmallCNN()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(va)
        print(f"epoch {epoch}: train loss {loss.item():.4f} val acc {acc:.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--epochs", type=int, default=8)
    main(p.parse_args())
