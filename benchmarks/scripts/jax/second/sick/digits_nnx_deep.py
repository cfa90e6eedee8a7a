import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits


class Block(nnx.Module):
    def __init__(self, n_in, n_out, rngs):
        self.linear = nnx.Linear(n_in, n_out, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(n_out, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.linear(x)))


class DeepNet(nnx.Module):
    def __init__(self, rngs, width=64, depth=8):
        self.blocks = nnx.List([Block(64 if i == 0 else width, width, rngs) for i in range(depth)])
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_fn(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits


@nnx.jit
def train_step(model, optimizer, metrics, x, y):
    (loss, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    metrics.update(loss=loss, logits=logits, labels=y)
    optimizer.update(model, grads)


@nnx.jit
def eval_step(model, metrics, x, y):
    loss, logits = loss_fn(model, x, y)
    metrics.update(loss=loss, logits=logits, labels=y)


def evaluate(model, x, y):
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    model.eval()
    for i in range(0, len(x), 100):
        eval_step(model, metrics, x[i : i + 100], y[i : i + 100])
    return metrics.compute()


x, y = load_digits(return_X_y=True)
x = ((x - x.mean()) / x.std()).astype(np.float32)
rng = np.random.default_rng(1)
order = rng.permutation(len(x))
x, y = x[order], y[order].astype(np.int32)
x_train, y_train, x_test, y_test = x[:1397], y[:1397], x[1397:], y[1397:]

model = DeepNet(nnx.Rngs(1))
optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
start = evaluate(model, x_test, y_test)
print(f"before training: loss {float(start['loss']):.3f} accuracy {float(start['accuracy']):.3f}")

BATCH = 64
for epoch in range(12):
    train_metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    perm = rng.permutation(len(x_train))
    for i in range(0, len(perm) - BATCH + 1, BATCH):
        batch = perm[i : i + BATCH]
        train_step(model, optimizer, train_metrics, x_train[batch], y_train[batch])
    tr = train_metrics.compute()
    te = evaluate(model, x_test, y_test)
    print(f"{epoch:2d} train {float(tr['loss']):.3f}/{float(tr['accuracy']):.3f}  test {float(te['loss']):.3f}/{float(te['accuracy']):.3f}")
