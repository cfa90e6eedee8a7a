import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits


class Encoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 8, (3, 3), strides=2, rngs=rngs)
        self.conv2 = nnx.Conv(8, 12, (3, 3), strides=2, rngs=rngs)
        self.project = nnx.Linear(4 * 12, 6, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.conv1(x))
        x = nnx.relu(self.conv2(x))
        return nnx.tanh(self.project(x.reshape(x.shape[0], -1)))


class Head(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(6, 32, rngs=rngs)
        self.out = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, z):
        return self.out(nnx.relu(self.hidden(z)))


def loss_fn(encoder, head, x, y):
    logits = head(encoder(x))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits


@nnx.jit
def train_step(encoder, head, opt, x, y):
    grad_fn = nnx.value_and_grad(loss_fn, argnums=(0, 1), has_aux=True)
    (loss, logits), (g_encoder, g_head) = grad_fn(encoder, head, x, y)
    opt.update(head, g_head)
    return loss, jnp.mean(jnp.argmax(logits, -1) == y)


@nnx.jit
def accuracy(encoder, head, x, y):
    return jnp.mean(jnp.argmax(head(encoder(x)), -1) == y)


def main():
    digits = load_digits()
    rng = np.random.default_rng(8)
    order = rng.permutation(len(digits.target))
    x = (digits.images[order, :, :, None] / 16.0).astype(np.float32)
    y = digits.target[order]
    x_train, y_train, x_test, y_test = x[:1400], y[:1400], x[1400:], y[1400:]

    encoder, head = Encoder(nnx.Rngs(0)), Head(nnx.Rngs(1))
    opt = nnx.Optimizer(head, optax.adam(4e-3), wrt=nnx.Param)

    for epoch in range(12):
        rows = rng.permutation(1400)
        losses, accs = [], []
        for i in range(0, 1400, 70):
            take = rows[i : i + 70]
            loss, acc = train_step(encoder, head, opt, x_train[take], y_train[take])
            losses.append(loss)
            accs.append(acc)
        if (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1:2d} | loss {np.mean(losses):.3f} | train {np.mean(accs):.3f} | test {float(accuracy(encoder, head, x_test, y_test)):.3f}")


if __name__ == "__main__":
    main()
