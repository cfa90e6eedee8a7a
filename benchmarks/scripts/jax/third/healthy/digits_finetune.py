"""Pretrain on clean digits, then adapt all weights to rotated ones with a small rate, the trunk slower than the head."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits


class Net(nnx.Module):
    def __init__(self, rngs):
        self.trunk = nnx.Sequential(nnx.Linear(64, 96, rngs=rngs), nnx.relu, nnx.Linear(96, 64, rngs=rngs), nnx.relu)
        self.head = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        return self.head(self.trunk(x))


def loss_fn(model, x, y):
    target = optax.smooth_labels(jax.nn.one_hot(y, 10), 0.05)
    return optax.softmax_cross_entropy(model(x), target).mean()


@nnx.jit
def step(model, opt, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    opt.update(model, grads)
    return loss


@nnx.jit
def accuracy(model, x, y):
    return jnp.mean(jnp.argmax(model(x), -1) == y)


def fit(model, opt, x, y, epochs, rng, title, x_test, y_test):
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        losses = [step(model, opt, x[order[i : i + 50]], y[order[i : i + 50]]) for i in range(0, len(x) - 49, 50)]
        if epoch % 4 == 3:
            print(f"{title} {epoch + 1}: loss {np.mean(losses):.3f}  accuracy {float(accuracy(model, x_test, y_test)):.3f}")


digits = load_digits()
rng = np.random.default_rng(4)
order = rng.permutation(len(digits.target))
images, y = (digits.images[order] / 16.0).astype(np.float32), digits.target[order]
flat = images.reshape(-1, 64)
turned = np.rot90(images, axes=(1, 2)).reshape(-1, 64).copy()

model = Net(nnx.Rngs(2))
fit(model, nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param), flat[:1000], y[:1000], 12, rng, "pretrain", flat[1400:], y[1400:])
print(f"rotated digits before: {float(accuracy(model, turned[1400:], y[1400:])):.3f}")


def which(path, _):
    return "head" if any(getattr(p, "key", None) == "head" for p in path) else "trunk"


labels = jax.tree_util.tree_map_with_path(which, nnx.state(model, nnx.Param), is_leaf=lambda v: isinstance(v, nnx.Variable))
tx = optax.multi_transform({"head": optax.adam(1e-3), "trunk": optax.adam(4e-4)}, labels)
fit(model, nnx.Optimizer(model, tx, wrt=nnx.Param), turned[:1000], y[:1000], 16, rng, "finetune", turned[1400:], y[1400:])
