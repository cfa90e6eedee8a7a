# Inverse kinematics of a two-link arm: from where the hand is to the angles of the joints.
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
mx.random.seed(10)
rng = np.random.default_rng(10)


def hand(angles, l1=1.0, l2=0.8):
    a, b = angles[:, 0], angles[:, 0] + angles[:, 1]
    return np.stack([l1 * np.cos(a) + l2 * np.cos(b), l1 * np.sin(a) + l2 * np.sin(b)], 1)


def dataset(n):
    angles = np.stack([rng.uniform(0.1, 1.4, n), rng.uniform(0.3, 2.4, n)], 1)
    where = hand(angles)
    return where.astype(np.float32), angles.astype(np.float32)


x, y = dataset(9000)
x = (x - x[:8000].mean(0)) / x[:8000].std(0)
y = (y - y[:8000].mean(0)) / y[:8000].std(0)
x_train, y_train = x[:8000], y[:8000]
x_val, y_val = mx.array(x[8000:]), mx.array(y[8000:])

net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
opt = optim.Adam(learning_rate=2e-3)


def loss_of(net, x, y):
    return nn.losses.mse_loss(net(x), y, reduction="mean")


gradient = nn.value_and_grad(net, loss_of)


def train_batch(xb, yb):
    loss, grads = gradient(net, xb, yb)
    grads, norm = optim.clip_grad_norm(grads, max_norm=2.0)
    opt.apply_gradients(grads, net.trainable_parameters())
    mx.eval(net.parameters(), opt.state, loss)
    return loss.item(), norm.item()


for epoch in range(1, 41):
    losses, norms = [], []
    for rows in rng.permutation(8000).reshape(-1, 80):
        loss, norm = train_batch(mx.array(x_train[rows]), mx.array(y_train[rows]))
        losses.append(loss)
        norms.append(norm)
    if epoch % 8 == 0:
        val = loss_of(net, x_val, y_val).item()
        print(f"epoch {epoch:2d}  loss {np.mean(losses):.5f}  |g| {np.mean(norms):.3f}  val {val:.5f}")
