import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, latent=6, hidden=64):
        super().__init__()
        self.enc = nn.Linear(64, hidden)
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def terms(out, x):
    logits, mu, logvar = out
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    return rec, kl


def main(epochs=20):
    torch.manual_seed(1)
    data = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    data = data[torch.randperm(len(data))]
    loader = DataLoader(data[:1500], batch_size=50, shuffle=True)
    val = data[1500:]
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        beta = min(1.0, (epoch + 1) / 5)
        model.train()
        total = 0.0
        for x in loader:
            rec, kl = terms(model(x), x)
            loss = rec + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            rec, kl = terms(model(val), val)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: train {total / len(loader):.3f} val rec {rec:.3f} kl {kl:.3f}")


if __name__ == "__main__":
    main()
