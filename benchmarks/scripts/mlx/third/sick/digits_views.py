"""Learn a code for digits from two noisy views of each, without labels; then see what a simple classifier makes of it."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

mx.set_default_device(mx.cpu)


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc2 = nn.Linear(96, 48)
        self.fc3 = nn.Linear(48, dim)

    def __call__(self, x):
        x = nn.relu(self.fc1(x))
        x = nn.relu(self.fc2(x))
        return self.fc3(x)


def view(x):
    keep = mx.random.bernoulli(0.75, x.shape)
    return x * keep + 0.1 * mx.random.normal(x.shape)


def agreement_loss(model, a, b):
    za, zb = model(a), model(b)
    return mx.mean(mx.sum(mx.square(za - zb), axis=-1))


def probe(model, x, y):
    z = np.array(model(mx.array(x)))
    print(f"  spread of the code over samples: {z.std(axis=0).mean():.5f}")
    return LogisticRegression(max_iter=500).fit(z[:400], y[:400]).score(z[1400:], y[1400:])


def main():
    mx.random.seed(10)
    rng = np.random.default_rng(10)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    x, y = (digits.data[order] / 16.0).astype(np.float32), digits.target[order]
    model = Encoder()
    mx.eval(model.parameters())
    optimizer = optim.Adam(learning_rate=1e-3)
    step = nn.value_and_grad(model, agreement_loss)
    print(f"probe before: {probe(model, x, y):.3f}")
    for epoch in range(20):
        rows = rng.permutation(1400)
        losses = []
        for i in range(0, 1400, 100):
            batch = mx.array(x[rows[i : i + 100]])
            loss, grads = step(model, view(batch), view(batch))
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.5f}")
    print(f"probe after: {probe(model, x, y):.3f}")


main()
