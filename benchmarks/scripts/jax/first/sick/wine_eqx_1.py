import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split


class Classifier(eqx.Module):
    layers: list

    def __init__(self, key):
        k1, k2, k3 = jr.split(key, 3)
        self.layers = [
            eqx.nn.Linear(13, 32, key=k1),
            jnp.tanh,
            eqx.nn.Linear(32, 32, key=k2),
            jnp.tanh,
            eqx.nn.Linear(32, 3, key=k3),
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def loss_fn(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@eqx.filter_jit
def make_step(model, opt_state, x, y):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y)
    updates, opt_state = optim.update(grads, opt_state, model)
    model = eqx.apply_updates(model, updates)
    return model, opt_state, loss


@eqx.filter_jit
def accuracy(model, x, y):
    return jnp.mean(jnp.argmax(jax.vmap(model)(x), axis=1) == y)


features, target = load_wine(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(features, target, test_size=0.25, random_state=4, stratify=target)
x_train, x_test = jnp.asarray(x_train, jnp.float32), jnp.asarray(x_test, jnp.float32)
y_train, y_test = jnp.asarray(y_train), jnp.asarray(y_test)

key = jr.PRNGKey(2)
model_key, key = jr.split(key)
model = Classifier(model_key)
optim = optax.sgd(0.05)
opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

for epoch in range(60):
    key, perm_key = jr.split(key)
    perm = jr.permutation(perm_key, len(x_train))
    running = 0.0
    for start in range(0, 128, 16):
        idx = perm[start : start + 16]
        model, opt_state, loss = make_step(model, opt_state, x_train[idx], y_train[idx])
        running += loss.item()
    if epoch % 10 == 9:
        print(f"epoch={epoch + 1} loss={running / 8:.4f} test_acc={accuracy(model, x_test, y_test).item():.3f}")
