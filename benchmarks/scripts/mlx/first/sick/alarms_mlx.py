import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

# Readings of a machine; an alarm is due when vibration and heat come together.
rng = np.random.default_rng(40)
mx.random.seed(40)


def readings(n):
    x = rng.normal(size=(n, 12)).astype(np.float32)
    risk = 0.9 * x[:, 0] + 0.9 * x[:, 3] - 0.5 * x[:, 7] + 0.7 * rng.normal(size=n)
    return x, (risk > 3.65).astype(np.float32)


x_train, y_train = readings(6000)
x_val, y_val = readings(3000)
print(f"{int(y_train.sum())} alarms in {len(y_train)} readings")


class Detector(nn.Module):
    def __init__(self, dims, hidden=24):
        super().__init__()
        self.fc1 = nn.Linear(dims, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)

    def __call__(self, x):
        x = nn.relu(self.fc1(x))
        x = nn.relu(self.fc2(x))
        return self.fc3(x)[:, 0]


def bce(model, x, y):
    return nn.losses.binary_cross_entropy(model(x), y, with_logits=True, reduction="mean")


model = Detector(12)
optimizer = optim.SGD(learning_rate=0.02)
grad_fn = nn.value_and_grad(model, bce)
for epoch in range(6):
    order = rng.permutation(len(x_train))
    losses = []
    for idx in np.array_split(order, 60):
        loss, grads = grad_fn(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    alarms = np.array(model(mx.array(x_val))) > 0
    accuracy = (alarms == y_val).mean()
    found = alarms[y_val == 1].sum()
    print(f"epoch {epoch} loss {np.mean(losses):.4f} val accuracy {accuracy:.4f} found {found}/{int(y_val.sum())}")
