import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.random.seed(4)
rng = np.random.default_rng(4)
WIDTH, DEPTH = 40, 8
glorot = nn.init.glorot_uniform()


def dense(n_in, n_out):
    layer = nn.Linear(n_in, n_out)
    layer.weight = glorot(layer.weight)
    return layer


def build():
    layers = [dense(64, WIDTH), nn.Sigmoid()]
    for _ in range(DEPTH):
        layers.append(dense(WIDTH, WIDTH))
        layers.append(nn.Sigmoid())
    layers.append(dense(WIDTH, 10))
    return nn.Sequential(*layers)


x, y = load_digits(return_X_y=True)
x = ((x - x.mean()) / x.std()).astype(np.float32)
x_train, x_test, y_train, y_test = train_test_split(x, y.astype(np.int32), test_size=0.2, random_state=4)
x_test, y_test = mx.array(x_test), mx.array(y_test)

model = build()
optimizer = optim.SGD(learning_rate=0.05, momentum=0.9)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


step = nn.value_and_grad(model, loss_fn)
for epoch in range(15):
    total, count = 0.0, 0
    perm = rng.permutation(len(x_train))
    for i in range(0, len(perm) - 47, 48):
        idx = perm[i : i + 48]
        loss, grads = step(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state, loss)
        total, count = total + loss.item(), count + 1
    acc = mx.mean(mx.argmax(model(x_test), axis=-1) == y_test).item()
    print(f"epoch {epoch + 1:2d} loss {total / count:.4f} test acc {acc:.3f}")
