"""A small data set: 106 wines to learn from. Two half batches for an update, weight decay, stop when validation stalls."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

mx.set_default_device(mx.cpu)
mx.random.seed(8)
rng = np.random.default_rng(8)

x, y = load_wine(return_X_y=True)
x_train, x_rest, y_train, y_rest = train_test_split(x, y, test_size=0.4, stratify=y, random_state=8)
scaler = StandardScaler().fit(x_train)
x_train, x_rest = (scaler.transform(a).astype(np.float32) for a in (x_train, x_rest))
x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=8)

model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = optim.AdamW(learning_rate=2e-3, weight_decay=0.02)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def measure(x, y):
    model.eval()
    logits = model(mx.array(x))
    loss = nn.losses.cross_entropy(logits, mx.array(y), reduction="mean").item()
    model.train()
    return loss, float((np.array(logits).argmax(1) == y).mean())


grad_fn = nn.value_and_grad(model, loss_fn)
best, keep, stale = float("inf"), None, 0
for epoch in range(60):
    order = rng.permutation(len(x_train))
    halves = np.array_split(order, 12)
    train_loss = 0.0
    for first, second in zip(halves[0::2], halves[1::2]):
        total = None
        for part in (first, second):
            loss, grads = grad_fn(model, mx.array(x_train[part]), mx.array(y_train[part]))
            grads = tree_map(lambda g: g / 2, grads)
            total = grads if total is None else tree_map(lambda a, b: a + b, total, grads)
            train_loss += loss.item() / 12
        optimizer.update(model, total)
        mx.eval(model.parameters(), optimizer.state)
    val_loss, val_acc = measure(x_val, y_val)
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.3f}")
    if val_loss < best - 1e-4:
        best, keep, stale = val_loss, tree_map(lambda p: mx.array(p), model.parameters()), 0
    else:
        stale += 1
    if stale == 12:
        print("stopping after epoch", epoch)
        break
model.update(keep)
print("test: loss {:.4f}, accuracy {:.3f}".format(*measure(x_test, y_test)))
