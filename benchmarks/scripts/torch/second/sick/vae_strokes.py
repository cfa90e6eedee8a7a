"""A VAE on black-and-white digits."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
torch.set_num_threads(1)


class VAE(nn.Module):
    def __init__(self, n_in=64, hidden=256, latent=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_in)
        )

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.dec(z)), mu, logvar


def elbo(x_hat, x, mu, logvar, beta):
    bce = -(x * torch.log(x_hat) + (1 - x) * torch.log(1 - x_hat)).sum(dim=1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
    return bce + beta * kl, bce, kl


def evaluate(model, loader, beta):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for (x,) in loader:
            x_hat, mu, logvar = model(x)
            total += elbo(x_hat, x, mu, logvar, beta)[0].item() * len(x)
    model.train()
    return total / len(loader.dataset)


def main(epochs=60, beta=0.2):
    images = torch.tensor(load_digits().data, dtype=torch.float32)
    strokes = (images > 7).float()
    perm = torch.randperm(len(strokes))
    train_loader = DataLoader(TensorDataset(strokes[perm[:1500]]), batch_size=50, shuffle=True)
    test_loader = DataLoader(TensorDataset(strokes[perm[1500:]]), batch_size=300)

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, epochs + 1):
        sums = [0.0, 0.0]
        for (x,) in train_loader:
            x_hat, mu, logvar = model(x)
            loss, bce, kl = elbo(x_hat, x, mu, logvar, beta)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums[0] += bce.item()
            sums[1] += kl.item()
        if epoch % 5 == 0:
            n = len(train_loader)
            print(
                f"epoch {epoch}: bce {sums[0] / n:.3f}  kl {sums[1] / n:.3f}"
                f"  test {evaluate(model, test_loader, beta):.3f}"
            )
    model.eval()
    with torch.no_grad():
        sample = torch.sigmoid(model.dec(torch.randn(1, 12))).view(8, 8) > 0.5
    for row in sample.int().tolist():
        print("".join("#" if v else "." for v in row))


if __name__ == "__main__":
    main()
