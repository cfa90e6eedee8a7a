import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class MLP(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.fc1 = nnx.Linear(64, 96, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.fc2 = nnx.Linear(96, 96, rngs=rngs)
        self.fc3 = nnx.Linear(96, 10, rngs=rngs)

    def __call__(self, x):
        x = self.drop(nnx.relu(self.fc1(x)))
        x = nnx.relu(self.fc2(x))
        return self.fc3(x)


EPOCHS, BATCH = 16, 48
x, y = load_digits(return_X_y=True)
x = (x / 16.0).astype(np.float32)
x_train, x_val, y_train, y_val = train_test_split(x, y, train_size=1440, random_state=31, stratify=y)
total = EPOCHS * (len(x_train) // BATCH)

model = MLP(nnx.Rngs(31))
schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, warmup_steps=60, decay_steps=total)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))
optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)


def loss_fn(model, xb, yb):
    targets = optax.smooth_labels(jnp.eye(10)[yb], 0.1)
    return optax.softmax_cross_entropy(model(xb), targets).mean()


@nnx.jit
def train_step(model, optimizer, xb, yb):
    loss, grads = nnx.value_and_grad(loss_fn)(model, xb, yb)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def accuracy(model, xb, yb):
    return (model(xb).argmax(-1) == yb).mean()


rng = np.random.default_rng(31)
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for idx in rng.permutation(len(x_train)).reshape(-1, BATCH):
        losses.append(train_step(model, optimizer, x_train[idx], y_train[idx]))
    model.eval()
    print(f"{epoch:3d} loss {np.mean(losses):.4f} val acc {accuracy(model, x_val, y_val):.4f}")
