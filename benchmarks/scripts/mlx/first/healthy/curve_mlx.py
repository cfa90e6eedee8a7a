import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

# Noisy measurements of a smooth curve; the squared errors are summed, so the step is small.
mx.random.seed(7)
rng = np.random.default_rng(7)
x = rng.uniform(-2, 2, (1200, 1)).astype(np.float32)
y = (np.sin(2 * x) + 0.3 * x + 0.3 * rng.normal(size=x.shape)).astype(np.float32)
x_train, y_train = x[:1000], y[:1000]
x_val, y_val = mx.array(x[1000:]), mx.array(y[1000:])

model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
mx.eval(model.parameters())


def sse(model, x, y):
    return mx.sum(mx.square(model(x) - y))


optimizer = optim.SGD(learning_rate=3e-4, momentum=0.9)
value_and_grad = nn.value_and_grad(model, sse)
best = (float("inf"), 0)
for epoch in range(40):
    total = 0.0
    for idx in np.split(rng.permutation(1000), 20):
        loss, grads = value_and_grad(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        total += loss.item()
    val = sse(model, x_val, y_val).item() / 200
    best = min(best, (val, epoch))
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1}: train {total / 1000:.4f} val {val:.4f} (noise 0.09)")
print("best", best)
