import os
import tempfile

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

mx.set_default_device(mx.cpu)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 4)

    def __call__(self, x):
        return self.fc3(nn.silu(self.fc2(nn.silu(self.fc1(x)))))


class Training(nn.Module):
    """The net together with its loss, so that one object can be handed around."""

    def __init__(self, net, smoothing):
        super().__init__()
        self.net = net
        self.smoothing = smoothing

    def __call__(self, x, y):
        return nn.losses.cross_entropy(self.net(x), y, label_smoothing=self.smoothing, reduction="mean")


def prepare():
    """Soil samples: sixteen measured substances, four kinds of ground."""
    x, y = make_classification(
        6000, 16, n_informative=9, n_redundant=3, n_classes=4, class_sep=1.5, flip_y=0.03, random_state=3
    )
    x_train, x_rest, y_train, y_rest = train_test_split(x, y, test_size=0.4, random_state=3, stratify=y)
    x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=3, stratify=y_rest)
    mean, std = x_train.mean(0), x_train.std(0)
    scale = lambda a: ((a - mean) / std).astype(np.float32)
    return (scale(x_train), y_train), (scale(x_val), y_val), (scale(x_test), y_test)


def accuracy(net, data):
    x, y = data
    return mx.mean(mx.argmax(net(mx.array(x)), axis=-1) == mx.array(y)).item()


def train(path, train_data, val_data, epochs=30, batch=40):
    training = Training(Net(), smoothing=0.05)
    optimizer = optim.AdamW(learning_rate=1e-3, weight_decay=0.02)
    value_and_grad = nn.value_and_grad(training, lambda m, x, y: m(x, y))
    rng = np.random.default_rng(3)
    best = np.inf
    x, y = train_data
    for epoch in range(1, epochs + 1):
        losses = []
        for rows in rng.permutation(len(x)).reshape(-1, batch):
            loss, grads = value_and_grad(training, mx.array(x[rows]), mx.array(y[rows]))
            optimizer.update(training, grads)
            mx.eval(training.parameters(), optimizer.state)
            losses.append(loss.item())
        val = training(mx.array(val_data[0]), mx.array(val_data[1])).item()
        if val < best:
            best = val
            training.save_weights(path)
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  val {val:.4f}  val acc {accuracy(training.net, val_data):.3f}")


def deploy(path):
    net = Net()
    net.load_weights(path, strict=False)
    net.eval()
    return net


if __name__ == "__main__":
    mx.random.seed(3)
    train_data, val_data, test_data = prepare()
    path = os.path.join(tempfile.mkdtemp(), "best.safetensors")
    train(path, train_data, val_data)
    print(f"deployed net on the test set: accuracy {accuracy(deploy(path), test_data):.3f}")
