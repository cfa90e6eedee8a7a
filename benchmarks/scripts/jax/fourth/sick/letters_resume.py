import os
import pickle
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class ConvBlock(nnx.Module):
    def __init__(self, cin, cout, stride, rngs):
        self.conv = nnx.Conv(cin, cout, (3, 3), strides=stride, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(cout, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.conv(x)))


class SmallNet(nnx.Module):
    def __init__(self, rngs):
        self.block1 = ConvBlock(1, 16, 1, rngs)
        self.block2 = ConvBlock(16, 32, 2, rngs)
        self.block3 = ConvBlock(32, 32, 2, rngs)
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        x = self.block3(self.block2(self.block1(x)))
        return self.head(x.mean(axis=(1, 2)))


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def predict(model, x):
    return model(x)


def evaluate(model, x, y):
    model.eval()
    logits = predict(model, x)
    model.train()
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    return float(loss), float(jnp.mean(logits.argmax(-1) == y))


def save(model, path):
    state = nnx.state(model, nnx.Param)
    with open(path, "wb") as f:
        pickle.dump(jax.tree.map(np.asarray, nnx.to_pure_dict(state)), f)


def load(path):
    model = SmallNet(nnx.Rngs(0))
    with open(path, "rb") as f:
        nnx.update(model, pickle.load(f))
    return model


def main():
    data = load_digits()
    images = (data.images[..., None] / 8.0 - 1.0).astype(np.float32)
    x_train, x_test, y_train, y_test = train_test_split(images, data.target, test_size=0.25, random_state=2, stratify=data.target)
    x_train, x_val, y_train, y_val = train_test_split(x_train, y_train, test_size=0.2, random_state=2, stratify=y_train)
    model = SmallNet(nnx.Rngs(2))
    optimizer = nnx.Optimizer(model, optax.adamw(2e-3, weight_decay=1e-3), wrt=nnx.Param)
    rng = np.random.default_rng(2)
    best, path = np.inf, os.path.join(tempfile.mkdtemp(), "best.pkl")
    for epoch in range(12):
        order = rng.permutation(len(x_train))
        losses = []
        for i in range(0, len(order) - 63, 64):
            rows = order[i : i + 64]
            losses.append(float(train_step(model, optimizer, x_train[rows], y_train[rows])))
        val_loss, val_acc = evaluate(model, x_val, y_val)
        mark = ""
        if val_loss < best:
            best, mark = val_loss, " (saved)"
            save(model, path)
        print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f} val {val_loss:.4f} acc {val_acc:.3f}{mark}")

    restored = load(path)
    loss, acc = evaluate(restored, x_test, y_test)
    print(f"best checkpoint on the test set: loss {loss:.4f} acc {acc:.3f}")


main()
