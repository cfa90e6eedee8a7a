"""Rings of points told apart by a network whose updates are written out."""

import torch
from sklearn.datasets import make_circles
from sklearn.model_selection import train_test_split

torch.manual_seed(4)
torch.set_num_threads(1)

X, y = make_circles(n_samples=1600, noise=0.08, factor=0.55, random_state=4)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=4)
X_train, X_test = (torch.tensor(a, dtype=torch.float32) for a in (X_train, X_test))
y_train, y_test = (torch.tensor(a, dtype=torch.float32) for a in (y_train, y_test))


def init(n_in, n_out):
    w = torch.randn(n_in, n_out) * (2.0 / n_in) ** 0.5
    b = torch.zeros(n_out)
    return [w.requires_grad_(), b.requires_grad_()]


W1, b1 = init(2, 32)
W2, b2 = init(32, 32)
W3, b3 = init(32, 1)
params = [W1, b1, W2, b2, W3, b3]


def forward(x):
    h = torch.relu(x @ W1 + b1)
    h = torch.relu(h @ W2 + b2)
    return (h @ W3 + b3).squeeze(1)


def bce(logits, target):
    # log(1 + exp(-|z|)) form
    return (logits.clamp(min=0) - logits * target + torch.log1p(torch.exp(-logits.abs()))).mean()


def batches(x, t, size):
    perm = torch.randperm(len(x))
    for i in range(0, len(x), size):
        idx = perm[i : i + size]
        yield x[idx], t[idx]


@torch.no_grad()
def evaluate():
    logits = forward(X_test)
    return bce(logits, y_test).item(), ((logits > 0).float() == y_test).float().mean().item()


lr = 0.1
for epoch in range(1, 41):
    total, count = 0.0, 0
    for xb, yb in batches(X_train, y_train, 40):
        loss = bce(forward(xb), yb)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= lr * p.grad
        total += loss.item()
        count += 1
    if epoch % 5 == 0:
        test_loss, acc = evaluate()
        print(f"epoch {epoch}: train {total / count:.4f}  test {test_loss:.4f}  accuracy {acc:.3f}")
    if epoch == 30:
        lr *= 0.3
