import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_diabetes

mx.set_default_device(mx.cpu)
mx.random.seed(1)

data = load_diabetes()
rng = np.random.default_rng(1)
order = rng.permutation(len(data.target))
x = data.data[order] / data.data.std(0)
y = (data.target[order] - 152.0) / 77.0
x, y = mx.array(x.astype(np.float32)), mx.array(y.astype(np.float32))
x_train, y_train = x[:260], y[:260]
x_val, y_val = x[260:], y[260:]


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(10, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def __call__(self, x):
        return self.c(nn.relu(self.b(nn.relu(self.a(x)))))[:, 0]


def mse(model, x, y):
    return mx.mean(mx.square(model(x) - y))


model = Regressor(256)
opt = optim.Adam(learning_rate=1e-3)
step = nn.value_and_grad(model, mse)

for epoch in range(100):
    shuffled = mx.array(rng.permutation(260))
    losses = []
    for i in range(0, 260, 26):
        rows = shuffled[i : i + 26]
        loss, grads = step(model, x_train[rows], y_train[rows])
        opt.update(model, grads)
        mx.eval(model.parameters(), opt.state)
        losses.append(loss.item())
    val = mse(model, x_val, y_val).item()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: train {np.mean(losses):.4f}  val {val:.4f}")

r2 = 1 - mse(model, x_val, y_val).item() / mx.var(y_val).item()
print(f"R2 of the validation part: {r2:.3f}")
