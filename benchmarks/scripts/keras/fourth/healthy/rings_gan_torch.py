"""Eight spots on a ring, drawn by a generator that plays against a critic (non-saturating loss, two optimisers)."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

NOISE, BATCH, STEPS = 8, 128, 2500


def spots(n, rng):
    which = rng.integers(0, 8, n) * np.pi / 4
    points = np.stack([np.cos(which), np.sin(which)], 1) * 1.4
    return torch.from_numpy((points + rng.normal(0, 0.08, (n, 2))).astype("float32"))


def mlp(inputs, outputs, activation):
    return keras.Sequential(
        [
            keras.Input((inputs,)),
            layers.Dense(64, activation=activation),
            layers.Dense(64, activation=activation),
            layers.Dense(outputs),
        ]
    )


class Game:
    def __init__(self, seed):
        keras.utils.set_random_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.painter = mlp(NOISE, 2, "relu")
        self.critic = mlp(2, 1, keras.layers.LeakyReLU(0.2))
        self.opt_p = keras.optimizers.Adam(1e-3, beta_1=0.5)
        self.opt_c = keras.optimizers.Adam(1e-3, beta_1=0.5)

    def noise(self, n):
        return torch.from_numpy(self.rng.normal(0, 1, (n, NOISE)).astype("float32"))

    @staticmethod
    def apply(optimizer, model, loss):
        model.zero_grad()
        loss.backward()
        weights = model.trainable_weights
        with torch.no_grad():
            optimizer.apply([w.value.grad for w in weights], weights)

    def critic_step(self):
        real = spots(BATCH, self.rng)
        with torch.no_grad():
            fake = self.painter(self.noise(BATCH))
        softplus = torch.nn.functional.softplus
        loss = softplus(-self.critic(real)).mean() + softplus(self.critic(fake)).mean()
        self.apply(self.opt_c, self.critic, loss)
        return float(loss.detach())

    def painter_step(self):
        loss = torch.nn.functional.softplus(-self.critic(self.painter(self.noise(BATCH)))).mean()
        self.apply(self.opt_p, self.painter, loss)
        return float(loss.detach())

    def quality(self, n=2000):
        with torch.no_grad():
            made = self.painter(self.noise(n)).cpu().numpy()
        angles = np.arange(8) * np.pi / 4
        centres = 1.4 * np.stack([np.cos(angles), np.sin(angles)], 1)
        gap = np.linalg.norm(made[:, None] - centres[None], axis=-1)
        near = gap.min(1) < 0.3
        return near.mean(), len(np.unique(gap.argmin(1)[near]))


game = Game(seed=4)
for step in range(1, STEPS + 1):
    critic_loss = game.critic_step()
    painter_loss = game.painter_step()
    if step % 250 == 0:
        share, seen = game.quality()
        print(f"step {step:4d}  critic {critic_loss:.3f}  painter {painter_loss:.3f}  on a spot {share:.1%}, spots found {seen}/8")
