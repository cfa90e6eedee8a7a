import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class CNN(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 12, kernel_size=(3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(12, 16, kernel_size=(3, 3), rngs=rngs)
        self.linear1 = nnx.Linear(2 * 2 * 16, 48, rngs=rngs)
        self.linear2 = nnx.Linear(48, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.conv1(x)), window_shape=(2, 2), strides=(2, 2))
        x = nnx.avg_pool(nnx.relu(self.conv2(x)), window_shape=(2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1)
        x = nnx.relu(self.linear1(x))
        x = nnx.softmax(self.linear2(x))
        return x


def loss_fn(model, batch):
    logits = model(batch["image"])
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
    return loss, logits


@nnx.jit
def train_step(model, optimizer, metrics, batch):
    grad_fn = nnx.value_and_grad(loss_fn, has_aux=True)
    (loss, logits), grads = grad_fn(model, batch)
    metrics.update(loss=loss, logits=logits, labels=batch["label"])
    optimizer.update(model, grads)


@nnx.jit
def eval_step(model, metrics, batch):
    loss, logits = loss_fn(model, batch)
    metrics.update(loss=loss, logits=logits, labels=batch["label"])


def batches(images, labels, size, rng):
    order = rng.permutation(len(images))
    for i in range(0, len(order) - size + 1, size):
        idx = order[i : i + size]
        yield {"image": jnp.asarray(images[idx]), "label": jnp.asarray(labels[idx])}


digits = load_digits()
images = (digits.images / 16.0 - 0.3).astype(np.float32)[..., None]
x_train, x_test, y_train, y_test = train_test_split(images, digits.target, test_size=0.2, random_state=0)

model = CNN(rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
rng = np.random.default_rng(0)

for epoch in range(10):
    for batch in batches(x_train, y_train, 32, rng):
        train_step(model, optimizer, metrics, batch)
    train = metrics.compute()
    metrics.reset()
    eval_step(model, metrics, {"image": jnp.asarray(x_test), "label": jnp.asarray(y_test)})
    test = metrics.compute()
    metrics.reset()
    print(
        f"epoch {epoch:2d} | train loss {train['loss']:.4f} acc {train['accuracy']:.3f}"
        f" | test loss {test['loss']:.4f} acc {test['accuracy']:.3f}"
    )
print("devices:", jax.devices())
