import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

mx.set_default_device(mx.cpu)
SEED = 23

x, y = make_classification(
    n_samples=4000, n_features=14, n_informative=8, n_redundant=2, weights=[0.86], class_sep=1.6, flip_y=0.01, random_state=SEED
)
x = ((x - x[:3000].mean(0)) / x[:3000].std(0)).astype(np.float32)
y = y.astype(np.float32)
train, val, test = slice(0, 3000), slice(3000, 3400), slice(3400, 4000)
POSITIVE = float((1 - y[train]).sum() / y[train].sum())
print(f"a leak counts {POSITIVE:.2f} times as much")


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(14, 48), nn.GELU(), nn.Dropout(0.2), nn.Linear(48, 24), nn.GELU(), nn.Linear(24, 1))

    def __call__(self, x):
        return self.net(x).squeeze(-1)


def loss_fn(model, x, y):
    each = nn.losses.binary_cross_entropy(model(x), y, reduction="none")
    weight = mx.where(y > 0.5, POSITIVE, 1.0)
    return mx.sum(weight * each) / mx.sum(weight)


mx.random.seed(SEED)
rng = np.random.default_rng(SEED)
model = Detector()
optimizer = optim.AdamW(learning_rate=1e-3, weight_decay=0.01)
grad_fn = nn.value_and_grad(model, loss_fn)
best, kept, waited = float("inf"), None, 0
for epoch in range(40):
    model.train()
    order = rng.permutation(3000)
    losses = []
    for i in range(0, 3000, 60):
        rows = order[i : i + 60]
        loss, grads = grad_fn(model, mx.array(x[rows]), mx.array(y[rows]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    model.eval()
    val_loss = loss_fn(model, mx.array(x[val]), mx.array(y[val])).item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f} val loss {val_loss:.4f}")
    if val_loss < best:
        best, waited = val_loss, 0
        kept = {k: mx.array(v) for k, v in dict(tree_flatten(model.parameters())).items()}
    else:
        waited += 1
        if waited == 6:
            print(f"no better for 6 epochs, stopped after {epoch + 1}")
            break

model.load_weights(list(kept.items()))
scores = np.array(model(mx.array(x[test])))
print(f"AUC {roc_auc_score(y[test], scores):.3f}, balanced accuracy {balanced_accuracy_score(y[test], scores > 0):.3f}")
