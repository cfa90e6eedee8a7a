"""A diffusion model of points on an oval: the net guesses the noise that was mixed in.
How well that can be guessed is bounded, so the loss soon lies level while the samples still get better."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
LEVELS, BATCH, STEPS = 40, 200, 2000

BETAS = np.linspace(1e-3, 0.15, LEVELS)
KEPT = np.cumprod(1 - BETAS).astype(np.float32)


def curve(t):
    return np.stack([1.5 * np.cos(t), 1.3 * np.sin(t)], 1)


def oval(n, rng):
    points = curve(rng.uniform(0, 2 * np.pi, n))
    return (points + rng.normal(0, 0.04, points.shape)).astype(np.float32)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.SinusoidalPositionalEncoding(16, max_freq=1.0, min_freq=0.02, scale=1.0)
        self.enter = nn.Linear(2 + 16, width)
        self.middle = [nn.Linear(width, width) for _ in range(2)]
        self.leave = nn.Linear(width, 2)

    def __call__(self, x, level):
        h = nn.silu(self.enter(mx.concatenate([x, self.time(level)], axis=-1)))
        for layer in self.middle:
            h = h + nn.silu(layer(h))
        return self.leave(h)


def loss_fn(model, noisy, level, noise):
    return mx.mean(mx.square(model(noisy, level) - noise))


def disturb(clean, rng):
    level = rng.integers(0, LEVELS, len(clean))
    noise = rng.normal(0, 1, clean.shape).astype(np.float32)
    kept = KEPT[level][:, None]
    noisy = np.sqrt(kept) * clean + np.sqrt(1 - kept) * noise
    return mx.array(noisy), mx.array(level.astype(np.float32)), mx.array(noise)


def sample(model, n, rng):
    x = rng.normal(0, 1, (n, 2)).astype(np.float32)
    for level in reversed(range(LEVELS)):
        guess = np.array(model(mx.array(x), mx.full((n,), float(level))))
        x = (x - BETAS[level] / np.sqrt(1 - KEPT[level]) * guess) / np.sqrt(1 - BETAS[level])
        if level:
            x = x + np.sqrt(BETAS[level]) * rng.normal(0, 1, x.shape)
        x = x.astype(np.float32)
    return x


def distance_to_curve(points):
    ideal = curve(np.linspace(0, 2 * np.pi, 1000))
    return np.sqrt(((points[:, None] - ideal[None]) ** 2).sum(-1).min(1)).mean()


mx.random.seed(16)
rng = np.random.default_rng(16)
held_out = disturb(oval(4000, rng), rng)
model = Denoiser()
schedule = optim.join_schedules([optim.linear_schedule(0.0, 4e-3, 100), optim.cosine_decay(4e-3, STEPS - 100)], [100])
optimizer = optim.Adam(learning_rate=schedule)
step_fn = nn.value_and_grad(model, loss_fn)
losses = []
for step in range(1, STEPS + 1):
    loss, grads = step_fn(model, *disturb(oval(BATCH, rng), rng))
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    losses.append(loss.item())
    if step % 400 == 0:
        made = sample(model, 300, np.random.default_rng(1))
        print(
            f"step {step:4d}  loss {np.mean(losses[-400:]):.4f}  held out {loss_fn(model, *held_out).item():.4f}"
            f"  samples lie {distance_to_curve(made):.3f} off the curve"
        )
