import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class CellNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU())
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


class Trainer:
    def __init__(self, net, lr=1e-2):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.crit = nn.BCEWithLogitsLoss()
        self.grad_norms = []

    def log_gradients(self):
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.grad_norms.append(float(norm))
        self.net.zero_grad()

    def fit(self, train_dl, val_dl, epochs):
        for epoch in range(epochs):
            self.net.train()
            losses = []
            for x, y in train_dl:
                loss = self.crit(self.net(x), y)
                loss.backward()
                self.log_gradients()
                self.opt.step()
                losses.append(loss.item())
            acc = self.accuracy(val_dl)
            print(f"epoch {epoch}: loss={sum(losses) / len(losses):.4f} |g|={self.grad_norms[-1]:.3f} acc={acc:.3f}")

    @torch.no_grad()
    def accuracy(self, dl):
        self.net.eval()
        hits = sum(((self.net(x) > 0).float() == y).sum().item() for x, y in dl)
        return hits / len(dl.dataset)


def main():
    torch.manual_seed(3)
    X, y = load_breast_cancer(return_X_y=True)
    Xtr, Xva, ytr, yva = train_test_split(X, y, test_size=0.2, random_state=3, stratify=y)
    scaler = StandardScaler().fit(Xtr)

    def to_ds(a, b):
        return TensorDataset(torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b).float())

    train_dl = DataLoader(to_ds(Xtr, ytr), batch_size=32, shuffle=True)
    val_dl = DataLoader(to_ds(Xva, yva), batch_size=64)
    Trainer(CellNet(X.shape[1])).fit(train_dl, val_dl, epochs=12)


if __name__ == "__main__":
    main()
