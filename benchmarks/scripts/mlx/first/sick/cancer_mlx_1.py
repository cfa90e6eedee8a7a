import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler


def prepare(x, kind):
    scaler = {"standard": StandardScaler(), "minmax": MinMaxScaler(feature_range=(0, 4))}[kind]
    return mx.array(scaler.fit_transform(x).astype(np.float32))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(30, 24), nn.Linear(24, 12)]
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(12, 2)

    def __call__(self, x):
        for layer in self.layers:
            x = self.dropout(nn.relu(layer(x)))
        return self.out(x)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


mx.random.seed(77)
rng = np.random.default_rng(77)
features, target = load_breast_cancer(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(features, target, test_size=0.25, random_state=77)
x_train, x_val = prepare(x_train, "standard"), prepare(x_val, "minmax")
y_train, y_val = mx.array(y_train.astype(np.int32)), mx.array(y_val.astype(np.int32))

model = Classifier()
optimizer = optim.Adam(learning_rate=1e-3)
train_fn = nn.value_and_grad(model, loss_fn)
for epoch in range(20):
    model.train()
    losses = []
    perm = rng.permutation(len(x_train))
    for i in range(0, len(perm) - 29, 30):
        idx = mx.array(perm[i : i + 30])
        loss, grads = train_fn(model, x_train[idx], y_train[idx])
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    model.eval()
    val_loss = loss_fn(model, x_val, y_val).item()
    val_acc = mx.mean(mx.argmax(model(x_val), axis=1) == y_val).item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} train {np.mean(losses):.4f} val {val_loss:.4f} val acc {val_acc:.4f}")
