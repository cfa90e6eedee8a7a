"""The adding problem: sum the two marked numbers of a sequence of 16."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
LENGTH = 16


def sequences(n, rng):
    values = rng.uniform(0, 1, (n, LENGTH))
    marks = np.zeros((n, LENGTH))
    first = rng.integers(0, LENGTH // 2, n)
    second = rng.integers(LENGTH // 2, LENGTH, n)
    marks[np.arange(n), first] = marks[np.arange(n), second] = 1
    total = (values * marks).sum(1)
    return mx.array(np.stack([values, marks], -1).astype(np.float32)), mx.array(total.astype(np.float32))


class Adder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(2, hidden)
        self.out = nn.Linear(hidden, 1)

    def __call__(self, x):
        return self.out(self.rnn(x)[:, -1]).squeeze(-1)


def loss_fn(model, x, y):
    return nn.losses.mse_loss(model(x), y)


def main():
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    model = Adder(32)
    mx.eval(model.parameters())
    schedule = optim.join_schedules([optim.linear_schedule(1e-4, 8e-3, 50), optim.cosine_decay(8e-3, 950)], [50])
    optimizer = optim.Adam(learning_rate=schedule)
    grad_fn = nn.value_and_grad(model, loss_fn)
    x_test, y_test = sequences(500, rng)
    print(f"guessing the mean gives {mx.var(y_test).item():.4f}")
    for step in range(1, 1001):
        x, y = sequences(50, rng)
        loss, grads = grad_fn(model, x, y)
        grads, norm = optim.clip_grad_norm(grads, 1.0)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        if step % 125 == 0:
            print(f"step {step}: loss {loss.item():.5f}  test {loss_fn(model, x_test, y_test).item():.5f}  norm {norm.item():.3f}")


main()
