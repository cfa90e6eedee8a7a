import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_diabetes


class Regressor(nn.Module):
    def __init__(self, in_dims, hidden):
        super().__init__()
        self.l1 = nn.Linear(in_dims, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, 1)

    def __call__(self, x):
        x = nn.gelu(self.l1(x))
        x = nn.gelu(self.l2(x))
        return self.l3(x).squeeze(-1)


def mse(model, x, y):
    return nn.losses.mse_loss(model(x), y)


mx.random.seed(10)
rng = np.random.default_rng(10)
x, y = load_diabetes(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
y = y.astype(np.float32)
perm = rng.permutation(len(x))
train, val = perm[:360], perm[360:]
x_val, y_val = mx.array(x[val]), mx.array(y[val])

model = Regressor(10, 32)
mx.eval(model.parameters())
optimizer = optim.Adam(learning_rate=5e-4)
loss_and_grad = nn.value_and_grad(model, mse)

for epoch in range(30):
    rng.shuffle(train)
    losses = []
    for start in range(0, len(train), 40):
        idx = train[start : start + 40]
        loss, grads = loss_and_grad(model, mx.array(x[idx]), mx.array(y[idx]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    if epoch % 5 == 4:
        val_mse = mse(model, x_val, y_val).item()
        r2 = 1 - val_mse / float(y[val].var())
        print(f"epoch {epoch + 1:3d} train mse {np.mean(losses):.2f} val mse {val_mse:.2f} val R2 {r2:.3f}")
