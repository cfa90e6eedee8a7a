"""Contrastive pretraining on digits, judged by a linear probe after every few epochs."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

torch.manual_seed(2)
torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self, width=32, dim=64):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(2 * width * 16, dim),
        )
        self.projector = nn.Sequential(
            nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, 32)
        )

    def forward(self, x):
        h = self.backbone(x)
        return h, F.normalize(self.projector(h), dim=-1)


def augment(x):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shifts=(dx, dy), dims=(2, 3))
    x = x * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1))
    keep = (torch.rand_like(x) > 0.15).float()
    return x * keep + 0.1 * torch.randn_like(x)


def info_nce(z1, z2, temperature=0.2):
    z = torch.cat([z1, z2])
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    n = len(z1)
    labels = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, labels)


def linear_probe(encoder, train, test):
    encoder.eval()
    with torch.no_grad():
        h_train, _ = encoder(train[0])
        h_test, _ = encoder(test[0])
    probe = LogisticRegression(max_iter=500, C=1.0)
    probe.fit(h_train.numpy(), train[1].numpy())
    return probe.score(h_test.numpy(), test[1].numpy())


def main(epochs=12, batch_size=128):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    images = (images - images.mean()) / images.std()
    labels = torch.tensor(digits.target)
    perm = torch.randperm(len(images))
    train = images[perm[:1400]], labels[perm[:1400]]
    test = images[perm[1400:]], labels[perm[1400:]]

    encoder = Encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3, weight_decay=1e-4)
    print(f"random features: probe accuracy {linear_probe(encoder, train, test):.3f}")
    for epoch in range(1, epochs + 1):
        order = torch.randperm(len(train[0]))
        losses = []
        for i in range(0, len(order) - batch_size + 1, batch_size):
            x = train[0][order[i : i + batch_size]]
            _, z1 = encoder(augment(x))
            _, z2 = encoder(augment(x))
            loss = info_nce(z1, z2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        line = f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}"
        if epoch % 4 == 0:
            line += f"  probe accuracy {linear_probe(encoder, train, test):.3f}"
        print(line)


if __name__ == "__main__":
    main()
