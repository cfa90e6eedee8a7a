import torch
from sklearn.datasets import make_moons

torch.manual_seed(0)
X, y = make_moons(n_samples=1000, noise=0.15, random_state=0)
X = torch.tensor(X, dtype=torch.float32)
X = (X - X[:800].mean(0)) / X[:800].std(0)
y = torch.tensor(y, dtype=torch.float32)
X_train, y_train, X_test, y_test = X[:800], y[:800], X[800:], y[800:]

W1 = (torch.randn(2, 32) * (2 / 2) ** 0.5).requires_grad_()
b1 = torch.zeros(32, requires_grad=True)
W2 = (torch.randn(32, 1) * (2 / 32) ** 0.5).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
params = [W1, b1, W2, b2]
lr = 0.3


def forward(x):
    h = torch.relu(x @ W1 + b1)
    return (h @ W2 + b2).squeeze(1)


for epoch in range(30):
    total = 0.0
    order = torch.randperm(len(X_train))
    for idx in order.split(40):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(forward(X_train[idx]), y_train[idx])
        loss.backward()
        with torch.no_grad():
            for p in params:
                p = p - lr * p.grad
        for p in params:
            p.grad = None
        total += loss.item() * len(idx)
    with torch.no_grad():
        acc = ((forward(X_test) > 0).float() == y_test).float().mean().item()
    if epoch % 5 == 0:
        print(f"{epoch:3d} loss {total / len(X_train):.4f} test acc {acc:.3f}")
