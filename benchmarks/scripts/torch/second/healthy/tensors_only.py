"""Digits without nn.Module and without torch.optim: tensors, autograd and Nesterov's momentum."""

import torch
from sklearn.datasets import load_digits

torch.manual_seed(12)
torch.set_num_threads(1)

digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
Y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
Xtr, Ytr = X[perm[:1400]], Y[perm[:1400]]
Xte, Yte = X[perm[1400:]], Y[perm[1400:]]

n_hidden = 100
W1 = torch.randn(64, n_hidden) * (5 / 3) / 64**0.5
b1 = torch.randn(n_hidden) * 0.01
gain = torch.ones(n_hidden)
shift = torch.zeros(n_hidden)
W2 = torch.randn(n_hidden, 10) * 0.01
b2 = torch.zeros(10)
parameters = [W1, b1, gain, shift, W2, b2]
for p in parameters:
    p.requires_grad = True
velocity = [torch.zeros_like(p) for p in parameters]


def forward(x):
    h = x @ W1 + b1
    h = (h - h.mean(1, keepdim=True)) / (h.var(1, keepdim=True) + 1e-5).sqrt() * gain + shift
    return torch.tanh(h) @ W2 + b2


def nll(logits, y):
    logp = logits - logits.logsumexp(dim=1, keepdim=True)
    return -logp[torch.arange(len(y)), y].mean()


@torch.no_grad()
def report(epoch, losses):
    logits = forward(Xte)
    acc = (logits.argmax(1) == Yte).float().mean()
    print(f"{epoch:3d} | train {sum(losses) / len(losses):.4f} | test {nll(logits, Yte):.4f} | acc {acc:.4f}")


lr, mu = 0.05, 0.9
for epoch in range(1, 31):
    losses = []
    for ix in torch.randperm(len(Xtr)).split(50):
        loss = nll(forward(Xtr[ix]), Ytr[ix])
        for p in parameters:
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p, v in zip(parameters, velocity):
                v.mul_(mu).add_(p.grad)
                p -= lr * (p.grad + mu * v)
        losses.append(loss.item())
    if epoch == 20:
        lr *= 0.1
    if epoch % 5 == 0:
        report(epoch, losses)
