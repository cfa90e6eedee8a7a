"""A policy gradient for a contextual choice: which of four routes pays best for this customer?"""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
rng = np.random.default_rng(4)
mx.random.seed(4)
ROUTES, FEATURES = 4, 6
TRUTH = rng.normal(0, 1, (FEATURES, ROUTES))


def customers(n):
    return rng.normal(0, 1, (n, FEATURES)).astype(np.float32)


def pay(x, route):
    gain = np.tanh(x @ TRUTH)
    return gain[np.arange(len(x)), route] + rng.normal(0, 0.3, len(x))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(FEATURES, 48)
        self.actor = nn.Linear(48, ROUTES)
        self.critic = nn.Linear(48, 1)

    def __call__(self, x):
        h = mx.tanh(self.shared(x))
        return self.actor(h), self.critic(h).squeeze(-1)


def loss_fn(model, x, route, reward):
    logits, value = model(x)
    logp = nn.log_softmax(logits, axis=-1)
    chosen = mx.take_along_axis(logp, route[:, None], axis=-1)[:, 0]
    advantage = mx.stop_gradient(reward - value)
    entropy = -mx.sum(mx.exp(logp) * logp, axis=-1)
    actor = -mx.mean(chosen * advantage)
    critic = mx.mean(mx.square(reward - value))
    return actor + 0.5 * critic - 0.01 * mx.mean(entropy)


model = ActorCritic()
optimizer = optim.Adam(learning_rate=5e-3)
grad_fn = nn.value_and_grad(model, loss_fn)
history = []
x_check = customers(1000)
best = np.tanh(x_check @ TRUTH).max(1).mean()
for step in range(1, 1001):
    x = customers(64)
    logits, _ = model(mx.array(x))
    route = np.array(mx.random.categorical(logits))
    reward = pay(x, route)
    loss, grads = grad_fn(model, mx.array(x), mx.array(route.astype(np.int32)), mx.array(reward.astype(np.float32)))
    optimizer.update(model, grads)
    mx.eval(model.parameters(), optimizer.state)
    history.append(reward.mean())
    if step % 200 == 0:
        greedy = np.array(mx.argmax(model(mx.array(x_check))[0], axis=-1))
        got = np.tanh(x_check @ TRUTH)[np.arange(1000), greedy].mean()
        print(f"step {step}: pay {np.mean(history[-100:]):.3f}, greedy {got:.3f} of at best {best:.3f}")
