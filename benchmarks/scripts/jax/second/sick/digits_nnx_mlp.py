import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
import argparse

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Net(nnx.Module):
    def __init__(self, width, rngs):
        self.fc1 = nnx.Linear(64, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.fc2 = nnx.Linear(width, width, rngs=rngs)
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.fc1(x)))
        x = nnx.relu(self.fc2(x))
        return self.head(x)


def loss_fn(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def accuracy(model, x, y):
    return (model(x).argmax(-1) == y).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=9)
    ap.add_argument("--batch", type=int, default=48)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--width", type=int, default=96)
    args = ap.parse_args()

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype("float32")
    xtr, xte, ytr, yte = train_test_split(images, labels, test_size=0.2, random_state=4, stratify=labels)
    xtr, ytr = jnp.asarray(xtr), jnp.asarray(ytr)

    model = Net(args.width, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(args.lr), wrt=nnx.Param)
    key = jax.random.key(42)

    for epoch in range(args.epochs):
        key, kx, ky = jax.random.split(key, 3)
        xs = jax.random.permutation(kx, xtr)
        ys = jax.random.permutation(ky, ytr)
        total, count = 0.0, 0
        for i in range(0, len(xs) - args.batch + 1, args.batch):
            loss = train_step(model, optimizer, xs[i : i + args.batch], ys[i : i + args.batch])
            total += float(loss)
            count += 1
        print(f"[{epoch + 1:02d}/{args.epochs}] loss={total / count:.4f} test_acc={float(accuracy(model, xte, yte)):.4f}")


if __name__ == "__main__":
    main()
