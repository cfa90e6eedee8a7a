"""Which state is a pump in? A small table of readings, one derived column, an MLP."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
SEED, BATCH, EPOCHS = 13, 50, 30


def readings(n, seed):
    rng = np.random.default_rng(seed)
    state = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    speed = rng.gamma(8.0, 0.4, n)
    speed[rng.random(n) < 0.02] = 0.0  # standing still
    drawn = speed * rng.normal(1.0, 0.05, n)
    lifted = drawn * (0.8 - 0.12 * (state == 1) - 0.02 * (state == 2)) * rng.normal(1.0, 0.04, n)
    warm = 40 + 5 * speed + 9 * (state == 2) + rng.normal(0, 4, n)
    shake = rng.gamma(3.0, 0.3, n) * (1 + 0.8 * (state == 1) + 0.5 * (state == 2))
    return speed, drawn, lifted, warm, shake, state


def features(speed, drawn, lifted, warm, shake):
    efficiency = lifted / drawn
    return np.stack([speed, drawn, lifted, warm, shake, efficiency], axis=1)


class PumpNet(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.layers = [nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, classes)]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def main():
    mx.random.seed(SEED)
    rng = np.random.default_rng(SEED)
    *columns, state = readings(8000, SEED)
    table = features(*columns)
    cut = 6400
    known = table[:cut][np.isfinite(table[:cut]).all(1)]
    x = ((table - known.mean(0)) / known.std(0)).astype(np.float32)
    y = state.astype(np.int32)
    x_val, y_val = mx.array(x[cut:]), mx.array(y[cut:])
    model = PumpNet(x.shape[1], 32, 3)
    optimizer = optim.Adam(learning_rate=2e-3)
    grad_fn = nn.value_and_grad(model, loss_fn)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for rows in rng.permutation(cut).reshape(-1, BATCH):
            loss, grads = grad_fn(model, mx.array(x[rows]), mx.array(y[rows]))
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 5 == 0:
            logits = model(x_val)
            val = nn.losses.cross_entropy(logits, y_val, reduction="mean").item()
            acc = mx.mean(mx.argmax(logits, axis=-1) == y_val).item()
            print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  val {val:.4f}  acc {acc:.3f}")


main()
