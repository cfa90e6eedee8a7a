"""Large effective batches on a small machine: eight micro-batches for each update."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)
MICRO, PARTS, EPOCHS, LR = 16, 8, 20, 0.12


def build():
    return nn.Sequential(
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y).mean()


def main():
    mx.random.seed(13)
    rng = np.random.default_rng(13)
    data, target = load_digits(return_X_y=True)
    data = ((data - data.mean()) / data.std()).astype(np.float32)
    perm = rng.permutation(len(data))
    x, y = data[perm], target[perm]
    x_train, y_train, x_val, y_val = x[:1408], y[:1408], mx.array(x[1408:]), mx.array(y[1408:])

    model = build()
    optimizer = optim.SGD(learning_rate=LR, momentum=0.8)
    grad_fn = nn.value_and_grad(model, loss_fn)

    for epoch in range(EPOCHS):
        order = rng.permutation(len(x_train))
        epoch_loss, updates = 0.0, 0
        summed = None
        for n, start in enumerate(range(0, len(order), MICRO), start=1):
            b = order[start : start + MICRO]
            loss, grads = grad_fn(model, mx.array(x_train[b]), mx.array(y_train[b]))
            summed = grads if summed is None else tree_map(mx.add, summed, grads)
            mx.eval(summed, loss)
            epoch_loss += loss.item()
            if n % PARTS == 0:
                optimizer.update(model, summed)
                mx.eval(model.parameters(), optimizer.state)
                summed = None
                updates += 1
        val_acc = mx.mean(model(x_val).argmax(axis=1) == y_val).item()
        print(f"epoch {epoch:2d}: {updates} updates, loss {epoch_loss / n:.4f}, validation accuracy {val_acc:.3f}")


main()
