import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)
mx.random.seed(3)
DTYPE = mx.float16


class MLP(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:])]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.silu(layer(x))
        return self.layers[-1](x)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


digits = load_digits()
rng = np.random.default_rng(3)
order = rng.permutation(len(digits.target))
x = mx.array((digits.data[order] / 16.0).astype(np.float32)).astype(DTYPE)
y = mx.array(digits.target[order])
x_train, y_train, x_test, y_test = x[:1400], y[:1400], x[1400:], y[1400:]

model = MLP([64, 96, 96, 10])
model.set_dtype(DTYPE)
optimizer = optim.Adam(learning_rate=2e-3)
loss_and_grad = nn.value_and_grad(model, loss_fn)

for epoch in range(12):
    losses = []
    shuffled = mx.array(rng.permutation(1400))
    for i in range(0, 1400, 50):
        rows = shuffled[i : i + 50]
        loss, grads = loss_and_grad(model, x_train[rows], y_train[rows])
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    accuracy = mx.mean(mx.argmax(model(x_test), axis=-1) == y_test).item()
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}  test accuracy {accuracy:.3f}")
