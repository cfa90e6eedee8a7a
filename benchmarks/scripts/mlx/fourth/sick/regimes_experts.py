"""Mixture of experts on a function with four regimes."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)


class Experts(nn.Module):
    def __init__(self, inputs, hidden, experts):
        super().__init__()
        self.gate = nn.Linear(inputs, experts)
        self.enter = nn.Linear(inputs, experts * hidden)
        self.leave = mx.random.normal((experts, hidden)) * hidden**-0.5
        self.offset = mx.zeros(experts)
        self.experts, self.hidden = experts, hidden

    def __call__(self, x):
        share = mx.softmax(self.gate(x), axis=0)
        h = mx.tanh(self.enter(x)).reshape(-1, self.experts, self.hidden)
        said = mx.sum(h * self.leave, axis=-1) + self.offset
        return mx.sum(share * said, axis=-1)


def regimes(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, (n, 3))
    a, b, c = x.T
    y = np.where(a > 0, np.where(b > 0, 2 * c, -c + 1), np.where(b > 0, np.sin(3 * c), a * c - 1))
    y = (y + rng.normal(0, 0.1, n)) / 1.3
    return x.astype(np.float32), y.astype(np.float32)


def mse(model, x, y):
    return mx.mean(mx.square(model(x) - y))


class Trainer:
    def __init__(self, model, rate, batch, seed):
        self.model, self.batch = model, batch
        self.optimizer = optim.Adam(learning_rate=rate)
        self.grad = nn.value_and_grad(model, mse)
        self.rng = np.random.default_rng(seed)

    def epoch(self, x, y):
        losses = []
        for rows in self.rng.permutation(len(x)).reshape(-1, self.batch):
            loss, grads = self.grad(self.model, mx.array(x[rows]), mx.array(y[rows]))
            self.optimizer.update(self.model, grads)
            mx.eval(self.model.parameters(), self.optimizer.state)
            losses.append(loss.item())
        return float(np.mean(losses))

    def check(self, x, y):
        return mse(self.model, mx.array(x), mx.array(y)).item()


mx.random.seed(44)
train, val = regimes(8000, 44), regimes(1000, 45)
trainer = Trainer(Experts(3, 16, 6), rate=4e-3, batch=50, seed=44)
for e in range(1, 36):
    loss = trainer.epoch(*train)
    if e % 5 == 0:
        print(f"epoch {e:2d}  mse {loss:.4f}  val mse {trainer.check(*val):.4f}")
