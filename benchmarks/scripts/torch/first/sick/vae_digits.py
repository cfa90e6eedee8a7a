import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def elbo_loss(recon_logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(recon_logits, x, reduction="sum") / len(x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return rec + kld


torch.manual_seed(0)
data = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
data = data[torch.randperm(len(data))]
train_loader = DataLoader(data[:1500], batch_size=50, shuffle=True)
val_data = data[1500:]

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
running_loss = 0.0
step = 0
for epoch in range(25):
    model.train()
    for x in train_loader:
        recon, mu, logvar = model(x)
        loss = elbo_loss(recon, x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running_loss += loss
        step += 1
    model.eval()
    with torch.no_grad():
        val_loss = elbo_loss(model.dec(model.mu(model.enc(val_data))), val_data, torch.zeros(1), torch.zeros(1))
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} avg loss so far {running_loss / step:.3f} val reconstruction {val_loss:.3f}")
