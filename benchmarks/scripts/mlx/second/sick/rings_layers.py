import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import make_circles

mx.set_default_device(mx.cpu)
mx.random.seed(5)
np.random.seed(5)

X, y = make_circles(1600, noise=0.07, factor=0.45, random_state=5)
X = (X / X.std(axis=0)).astype(np.float32)
X_train, y_train = X[:1200], y[:1200].astype(np.float32)
X_val, y_val = mx.array(X[1200:]), mx.array(y[1200:].astype(np.float32))


class Classifier(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def __call__(self, x):
        x = self.inp(x)
        x = self.mid(x)
        return self.out(x).squeeze(-1)


def loss_fn(model, xb, yb):
    return nn.losses.binary_cross_entropy(model(xb), yb, with_logits=True)


model = Classifier()
optimizer = optim.AdamW(learning_rate=4e-3, weight_decay=1e-4)
value_and_grad = nn.value_and_grad(model, loss_fn)

for epoch in range(20):
    idx = np.random.permutation(len(X_train))
    running = 0.0
    for i in range(0, len(idx), 40):
        b = idx[i : i + 40]
        loss, grads = value_and_grad(model, mx.array(X_train[b]), mx.array(y_train[b]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        running += loss.item()
    val = loss_fn(model, X_val, y_val).item()
    acc = mx.mean((model(X_val) > 0) == (y_val > 0.5)).item()
    print(f"epoch {epoch + 1:2d}/20  train {running / 30:.4f}  val {val:.4f}  acc {acc:.3f}")
