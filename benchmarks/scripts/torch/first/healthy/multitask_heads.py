import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TwoHeads(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 24), nn.ReLU())
        self.heads = nn.ModuleDict({"kind": nn.Linear(24, 3), "colour": nn.Linear(24, 1)})

    def forward(self, x):
        h = self.trunk(x)
        return self.heads["kind"](h), self.heads["colour"](h).squeeze(-1)


def main():
    torch.manual_seed(3)
    X, kind = load_wine(return_X_y=True)
    colour, X = X[:, 9], X[:, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12]]
    Xt, Xv, kt, kv, ct, cv = train_test_split(X, kind, colour, test_size=0.3, random_state=3, stratify=kind)
    sc = StandardScaler().fit(Xt)
    m, s = ct.mean(), ct.std()
    f = torch.float32
    Xt, Xv = torch.tensor(sc.transform(Xt), dtype=f), torch.tensor(sc.transform(Xv), dtype=f)
    ct, cv = torch.tensor((ct - m) / s, dtype=f), torch.tensor((cv - m) / s, dtype=f)
    kt, kv = torch.tensor(kt), torch.tensor(kv)
    loader = DataLoader(TensorDataset(Xt, kt, ct), batch_size=16, shuffle=True)
    model = TwoHeads(Xt.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
    ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
    for epoch in range(20):
        model.train()
        for x, k, c in loader:
            logits, value = model(x)
            loss = ce(logits, k) + 0.5 * mse(value, c)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logits, value = model(Xv)
            acc, err = (logits.argmax(1) == kv).float().mean().item(), mse(value, cv).item()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:2d} loss {loss.item():.4f} val acc {acc:.3f} colour mse {err:.3f}")


if __name__ == "__main__":
    main()
