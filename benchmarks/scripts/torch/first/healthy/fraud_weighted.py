import torch
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(seed=9):
    X, y = make_classification(3000, 14, n_informative=8, weights=[0.85, 0.15], class_sep=1.4, random_state=seed)
    Xt, Xv, yt, yv = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    m, s = Xt.mean(0), Xt.std(0)
    t = [torch.tensor(a, dtype=torch.float32) for a in ((Xt - m) / s, yt, (Xv - m) / s, yv)]
    return t


def main():
    torch.manual_seed(9)
    x, y, xv, yv = load()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    pos_weight = (y == 0).sum() / (y == 1).sum()
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(12):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(xv).squeeze(1)
            val_loss = loss_fn(out, yv).item()
        bacc = balanced_accuracy_score(yv.numpy(), (out > 0).numpy())
        print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val_loss:.4f} balanced acc {bacc:.3f}")


if __name__ == "__main__":
    main()
