import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

TEMPERATURE = 0.2


class Embedder(eqx.Module):
    trunk: eqx.nn.MLP
    projector: eqx.nn.Linear

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.trunk = eqx.nn.MLP(64, 32, 96, 2, activation=jax.nn.relu, key=a)
        self.projector = eqx.nn.Linear(32, 16, use_bias=False, key=b)

    def __call__(self, x):
        z = self.projector(jax.nn.relu(self.trunk(x)))
        return z / (jnp.linalg.norm(z) + 1e-6)


def two_views(x, rng):
    views = []
    for _ in range(2):
        keep = rng.random(x.shape) > 0.25
        views.append((x * keep + rng.normal(0, 0.1, x.shape)).astype(np.float32))
    return views


def info_nce(model, a, b):
    za, zb = jax.vmap(model)(a), jax.vmap(model)(b)
    scores = za @ zb.T / TEMPERATURE
    same = jnp.arange(len(a))
    forth = optax.softmax_cross_entropy_with_integer_labels(scores, same)
    back = optax.softmax_cross_entropy_with_integer_labels(scores.T, same)
    return 0.5 * (forth.mean() + back.mean())


def probe(model, x, y, x_test, y_test):
    feats = jax.jit(jax.vmap(model.trunk))
    clf = LogisticRegression(max_iter=300).fit(np.asarray(feats(x))[:200], y[:200])
    return clf.score(np.asarray(feats(x_test)), y_test)


def main():
    rng = np.random.default_rng(6)
    digits = load_digits()
    x = (digits.data / 16.0).astype(np.float32)
    x -= x.mean(0)
    order = rng.permutation(len(x))
    x, y = x[order], digits.target[order]
    train, test = x[:1400], x[1400:]
    model = Embedder(jax.random.PRNGKey(6))
    tx = optax.adamw(2e-3, weight_decay=1e-4)
    opt_state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, opt_state, a, b):
        loss, grads = eqx.filter_value_and_grad(info_nce)(model, a, b)
        updates, opt_state = tx.update(grads, opt_state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    print(f"probe before: {probe(model, train, y[:1400], test, y[1400:]):.3f}")
    for epoch in range(40):
        order = rng.permutation(len(train))
        losses = []
        for i in range(0, 1400, 140):
            a, b = two_views(train[order[i : i + 140]], rng)
            model, opt_state, loss = step(model, opt_state, a, b)
            losses.append(float(loss))
        if epoch % 8 == 7:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}")
    print(f"probe after: {probe(model, train, y[:1400], test, y[1400:]):.3f}")


main()
