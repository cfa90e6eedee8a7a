import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

# Parts from a line; about one in six is faulty.
rng = np.random.default_rng(90)
mx.random.seed(90)
x = rng.normal(size=(3600, 9)).astype(np.float32)
signal = 1.4 * x[:, 1] - 1.2 * x[:, 4] + x[:, 2] * x[:, 6]
y = (signal + 0.5 * rng.normal(size=len(x)) > 1.95).astype(np.float32)
print(f"faulty: {y.mean():.1%}")
x_train, y_train = x[:3000], y[:3000]
x_val, y_val = mx.array(x[3000:]), mx.array(y[3000:])

model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))


def loss_fn(model, x, y):
    return nn.losses.binary_cross_entropy(model(x).squeeze(-1), y, reduction="mean")


optimizer = optim.Adam(learning_rate=2e-3)
loss_and_grad = nn.value_and_grad(model, loss_fn)
for epoch in range(10):
    model.train()
    losses = []
    for idx in rng.permutation(len(x_train)).reshape(-1, 60):
        loss, grads = loss_and_grad(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        grads, _ = optim.clip_grad_norm(grads, max_norm=1.0)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        losses.append(loss.item())
    model.eval()
    said = model(x_val).squeeze(-1) > 0
    recall = (mx.sum(said * y_val) / mx.sum(y_val)).item()
    precision = (mx.sum(said * y_val) / mx.maximum(mx.sum(said), 1)).item()
    val_loss = loss_fn(model, x_val, y_val).item()
    print(f"epoch {epoch} loss {np.mean(losses):.4f} val {val_loss:.4f} P {precision:.2f} R {recall:.2f}")
