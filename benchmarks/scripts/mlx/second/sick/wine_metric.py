"""Metric learning: wines of one kind close together, of different kinds at least a margin apart."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

mx.set_default_device(mx.cpu)
MARGIN = 2.0


class Embedder(nn.Module):
    def __init__(self, n_in, n_out=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.Tanh(), nn.Linear(32, n_out))

    def __call__(self, x):
        return self.body(x)


def contrastive(model, x, y):
    z = model(x)
    diff = z[:, None, :] - z[None, :, :]
    dist = mx.sqrt(mx.sum(diff * diff, axis=-1))
    same = (y[:, None] == y[None, :]).astype(mx.float32)
    other = 1.0 - same
    pull = same * dist * dist
    push = other * mx.maximum(MARGIN - dist, 0.0) ** 2
    return mx.mean(pull + push)


def knn_score(model, xa, ya, xb, yb):
    za, zb = np.array(model(mx.array(xa))), np.array(model(mx.array(xb)))
    if not (np.isfinite(za).all() and np.isfinite(zb).all()):
        return float("nan")
    return KNeighborsClassifier(3).fit(za, ya).score(zb, yb)


def main():
    mx.random.seed(6)
    rng = np.random.default_rng(6)
    x, y = load_wine(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.35, random_state=6, stratify=y)
    sc = StandardScaler().fit(xa)
    xa, xb = sc.transform(xa).astype(np.float32), sc.transform(xb).astype(np.float32)
    model = Embedder(13)
    optimizer = optim.Adam(learning_rate=3e-3)
    loss_and_grad = nn.value_and_grad(model, contrastive)
    for step in range(1, 301):
        pick = rng.choice(len(xa), 32, replace=False)
        loss, grads = loss_and_grad(model, mx.array(xa[pick]), mx.array(ya[pick]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        if step % 30 == 0 or step == 1:
            print(f"step {step:3d}  loss {loss.item():.4f}  3-nn accuracy {knn_score(model, xa, ya, xb, yb):.3f}")


main()
