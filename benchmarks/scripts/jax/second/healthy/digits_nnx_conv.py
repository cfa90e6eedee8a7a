import os
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EPOCHS, BATCH = 10, 64


class CNN(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 12, kernel_size=(3, 3), rngs=rngs)
        self.bn1 = nnx.BatchNorm(12, momentum=0.9, rngs=rngs)
        self.conv2 = nnx.Conv(12, 24, kernel_size=(3, 3), strides=(2, 2), rngs=rngs)
        self.drop = nnx.Dropout(0.3, rngs=rngs)
        self.fc = nnx.Linear(24 * 4 * 4, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.bn1(self.conv1(x)))
        x = nnx.relu(self.conv2(x))
        x = x.reshape(x.shape[0], -1)
        return self.fc(self.drop(x))


def loss_fn(model, x, y):
    logits = model(x)
    soft = optax.smooth_labels(one_hot10(y), 0.1)
    return optax.softmax_cross_entropy(logits, soft).mean()


def one_hot10(y):
    return nnx.one_hot(y, 10)


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def predict(model, x):
    return model(x).argmax(axis=-1)


images = load_digits().images[..., None].astype(np.float32) / 16.0
labels = load_digits().target
x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.25, random_state=3, stratify=labels)
steps = EPOCHS * (len(x_train) // BATCH)
schedule = optax.warmup_cosine_decay_schedule(0.0, 4e-3, warmup_steps=30, decay_steps=steps, end_value=1e-4)
model = CNN(nnx.Rngs(params=0, dropout=1))
optimizer = nnx.Optimizer(model, optax.adamw(schedule, weight_decay=1e-3), wrt=nnx.Param)

rng = np.random.default_rng(0)
for epoch in range(EPOCHS):
    model.train()
    order = rng.permutation(len(x_train))
    losses = []
    for i in range(0, len(order) - BATCH + 1, BATCH):
        b = order[i : i + BATCH]
        losses.append(float(train_step(model, optimizer, x_train[b], y_train[b])))
    model.eval()
    acc = float((np.asarray(predict(model, x_test)) == y_test).mean())
    print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}  test accuracy {acc:.4f}")
