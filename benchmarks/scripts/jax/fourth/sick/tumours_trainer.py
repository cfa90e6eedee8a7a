from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split


@dataclass(frozen=True)
class Settings:
    hidden: int = 24
    rate: float = 2e-3
    batch: int = 32
    epochs: int = 30
    seed: int = 11


class Net(nnx.Module):
    def __init__(self, inputs, hidden, rngs):
        self.a = nnx.Linear(inputs, hidden, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.b = nnx.Linear(hidden, 1, rngs=rngs)

    def __call__(self, x):
        return self.b(self.drop(jnp.tanh(self.a(x))))[:, 0]


def prepare(settings):
    table, malignant = load_breast_cancer(return_X_y=True)
    raw_train, raw_val, y_train, y_val = train_test_split(
        table, malignant, test_size=0.3, random_state=settings.seed, stratify=malignant
    )
    x_train = (raw_train - raw_train.mean(0)) / raw_train.std(0)
    x_val = (raw_val - raw_val.min(0)) / (raw_val.max(0) - raw_val.min(0))
    as_f32 = lambda a: np.asarray(a, np.float32)
    return (as_f32(x_train), as_f32(y_train)), (as_f32(x_val), as_f32(y_val))


def bce(model, x, y):
    return optax.sigmoid_binary_cross_entropy(model(x), y).mean()


@nnx.jit
def step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(bce)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def score(model, x, y):
    logits = model(x)
    return optax.sigmoid_binary_cross_entropy(logits, y).mean(), jnp.mean((logits > 0) == (y > 0.5))


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.train_set, self.val_set = prepare(settings)
        self.model = Net(self.train_set[0].shape[1], settings.hidden, nnx.Rngs(settings.seed))
        self.optimizer = nnx.Optimizer(self.model, optax.adamw(settings.rate, weight_decay=1e-2), wrt=nnx.Param)
        self.rng = np.random.default_rng(settings.seed)

    def epoch(self):
        x, y = self.train_set
        self.model.train()
        losses = []
        order = self.rng.permutation(len(x))
        for start in range(0, len(x), self.settings.batch):
            rows = order[start : start + self.settings.batch]
            losses.append(float(step(self.model, self.optimizer, x[rows], y[rows])))
        return np.mean(losses)

    def validate(self):
        self.model.eval()
        loss, acc = score(self.model, *self.val_set)
        return float(loss), float(acc)

    def fit(self):
        for e in range(1, self.settings.epochs + 1):
            loss = self.epoch()
            val_loss, val_acc = self.validate()
            if e % 5 == 0:
                print(f"[{e:02d}/{self.settings.epochs}] loss {loss:.4f} val_loss {val_loss:.4f} val_acc {val_acc:.3f}")


Trainer(Settings()).fit()
