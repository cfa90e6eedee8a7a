import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


@dataclasses.dataclass
class Config:
    lr: float = 2e-3
    batch_size: int = 64
    epochs: int = 30
    channels: int = 12
    seed: int = 5


class ConvNet(eqx.Module):
    conv1: eqx.nn.Conv2d
    conv2: eqx.nn.Conv2d
    out: eqx.nn.Linear
    drop: eqx.nn.Dropout

    def __init__(self, channels, key):
        k1, k2, k3 = jr.split(key, 3)
        self.conv1 = eqx.nn.Conv2d(1, channels, 3, padding=1, key=k1)
        self.conv2 = eqx.nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1, key=k2)
        self.out = eqx.nn.Linear(2 * channels * 16, 10, key=k3)
        self.drop = eqx.nn.Dropout(0.25)

    def __call__(self, image, key=None):
        h = jax.nn.relu(self.conv1(image))
        h = jax.nn.relu(self.conv2(h)).reshape(-1)
        h = self.drop(h, key=key, inference=key is None)
        return self.out(h)


def train_loss(model, x, y, key):
    logits = jax.vmap(model)(x, jr.split(key, len(x)))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


class Experiment:
    def __init__(self, cfg):
        self.cfg = cfg
        self.key = jr.key(cfg.seed)
        data = load_digits()
        images = (data.images[:, None] / 16.0 - 0.305) / 0.376
        self.xtr, self.xva, self.ytr, self.yva = train_test_split(
            images.astype(np.float32), data.target, test_size=0.25, random_state=cfg.seed, stratify=data.target
        )
        self.model = ConvNet(cfg.channels, self.next_key())
        schedule = optax.cosine_decay_schedule(cfg.lr, decay_steps=cfg.epochs)
        self.tx = optax.adam(schedule)
        self.opt_state = self.tx.init(eqx.filter(self.model, eqx.is_inexact_array))

    def next_key(self):
        self.key, sub = jr.split(self.key)
        return sub

    @eqx.filter_jit
    def update(self, model, opt_state, x, y, key):
        loss, grads = eqx.filter_value_and_grad(train_loss)(model, x, y, key)
        updates, opt_state = self.tx.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss

    @eqx.filter_jit
    def evaluate(self, model, x, y):
        logits = jax.vmap(model)(x)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return losses.mean(), jnp.mean(logits.argmax(-1) == y)

    def run(self):
        bs = self.cfg.batch_size
        for epoch in range(1, self.cfg.epochs + 1):
            perm = np.asarray(jr.permutation(self.next_key(), len(self.xtr)))
            losses = []
            for i in range(0, len(perm) - bs + 1, bs):
                rows = perm[i : i + bs]
                self.model, self.opt_state, loss = self.update(
                    self.model, self.opt_state, self.xtr[rows], self.ytr[rows], self.next_key()
                )
                losses.append(float(loss))
            if epoch % 5 == 0:
                val_loss, acc = self.evaluate(self.model, self.xva, self.yva)
                print(f"epoch {epoch:2d} loss={np.mean(losses):.4f} val_loss={float(val_loss):.4f} val_acc={float(acc):.3f}")


Experiment(Config()).run()
