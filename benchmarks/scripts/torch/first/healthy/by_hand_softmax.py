import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
sc = StandardScaler().fit(X_tr)
X_tr = torch.tensor(sc.transform(X_tr), dtype=torch.float32)
X_te = torch.tensor(sc.transform(X_te), dtype=torch.float32)
y_tr, y_te = torch.tensor(y_tr), torch.tensor(y_te)

W1 = (torch.randn(13, 16) / 13**0.5).requires_grad_()
b1 = torch.zeros(16, requires_grad=True)
W2 = (torch.randn(16, 3) / 16**0.5).requires_grad_()
b2 = torch.zeros(3, requires_grad=True)
lr = 0.1


def net(x):
    return torch.tanh(x @ W1 + b1) @ W2 + b2


for epoch in range(30):
    losses = []
    for idx in torch.randperm(len(X_tr)).split(16):
        log_p = torch.log_softmax(net(X_tr[idx]), dim=1)
        loss = -log_p[torch.arange(len(idx)), y_tr[idx]].mean()
        loss.backward()
        with torch.no_grad():
            for p in (W1, b1, W2, b2):
                p -= lr * p.grad
                p.grad.zero_()
        losses.append(loss.item())
    if epoch % 5 == 4:
        with torch.no_grad():
            acc = (net(X_te).argmax(1) == y_te).float().mean().item()
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f} test acc {acc:.3f}")
