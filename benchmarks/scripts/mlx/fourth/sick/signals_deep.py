import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)

CLASSES, POINTS = 5, 40


def signals(n, seed):
    """Five kinds of waves with random phase, strength and noise."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, POINTS)
    kind = rng.integers(0, CLASSES, n)
    phase = rng.uniform(0, 0.5, (n, 1))
    base = 2 * np.pi * (2 * t + phase)
    forms = np.stack([np.sin(base), np.sign(np.sin(base)), np.abs(np.sin(base)), np.sin(2 * base), np.sin(base) ** 3])
    wave = forms[kind, np.arange(n)] * rng.uniform(0.7, 1.3, (n, 1))
    x = wave + rng.normal(0, 0.2, wave.shape)
    return x.astype(np.float32), kind.astype(np.int32)


class Deep(nn.Module):
    def __init__(self, width=48, depth=16):
        super().__init__()
        sizes = [POINTS] + [width] * depth
        self.linears = [nn.Linear(a, b, bias=False) for a, b in zip(sizes[:-1], sizes[1:])]
        self.norms = [nn.BatchNorm(width) for _ in range(depth)]
        self.out = nn.Linear(width, CLASSES)

    def __call__(self, x):
        for linear, norm in zip(self.linears, self.norms):
            x = nn.relu(norm(linear(x)))
        return self.out(x)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def evaluate(model, x, y):
    model.eval()
    logits = model(mx.array(x))
    y = mx.array(y)
    return nn.losses.cross_entropy(logits, y, reduction="mean").item(), mx.mean(mx.argmax(logits, 1) == y).item()


def train_epoch(model, optimizer, step, x, y, batch, rng):
    losses = []
    for rows in rng.permutation(len(x)).reshape(-1, batch):
        loss, grads = step(model, mx.array(x[rows]), mx.array(y[rows]))
        optimizer.update(model, grads)
        mx.eval(model.state, optimizer.state)
        losses.append(loss.item())
    return np.mean(losses)


def main(seed=27, epochs=10, batch=50):
    mx.random.seed(seed)
    rng = np.random.default_rng(seed)
    x, y = signals(5000, seed)
    x_val, y_val = signals(800, seed + 1)
    scale = x.std()
    x, x_val = x / scale, x_val / scale
    model = Deep()
    optimizer = optim.SGD(learning_rate=optim.cosine_decay(0.02, epochs * len(x) // batch), momentum=0.9)
    step = nn.value_and_grad(model, loss_fn)
    print("before training: val loss %.3f, accuracy %.3f" % evaluate(model, x_val, y_val))
    for epoch in range(1, epochs + 1):
        loss = train_epoch(model, optimizer, step, x, y, batch, rng)
        val_loss, acc = evaluate(model, x_val, y_val)
        print(f"epoch {epoch:2d}: loss {loss:.3f}, val loss {val_loss:.3f}, accuracy {acc:.3f}")


main()
