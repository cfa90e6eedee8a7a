import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


def make_dataset(key, n=1024, length=40):
    """Sines, triangles and squares with noise."""
    k1, k2, k3, k4 = jr.split(key, 4)
    t = jnp.linspace(0, 1, length)
    kind = jr.randint(k1, (n,), 0, 3)
    freq = jr.uniform(k2, (n, 1), minval=2.0, maxval=4.0)
    phase = jr.uniform(k3, (n, 1))
    s = jnp.sin(2 * jnp.pi * (freq * t + phase))
    shapes = jnp.stack([s, jnp.arcsin(s) * 2 / jnp.pi, jnp.sign(s)])
    waves = shapes[kind, jnp.arange(n)] + 0.6 * jr.normal(k4, (n, length))
    return waves[:, None, :], kind


class ConvNet(eqx.Module):
    conv1: eqx.nn.Conv1d
    conv2: eqx.nn.Conv1d
    head: eqx.nn.Linear

    def __init__(self, key):
        a, b, c = jr.split(key, 3)
        self.conv1 = eqx.nn.Conv1d(1, 16, 5, padding=2, key=a)
        self.conv2 = eqx.nn.Conv1d(16, 16, 5, stride=2, key=b)
        self.head = eqx.nn.Linear(16, 3, key=c)

    def __call__(self, x):
        x = jax.nn.relu(self.conv1(x))
        x = jax.nn.relu(self.conv2(x))
        return self.head(jnp.mean(x, axis=-1))


def cross_entropy(model, x, y):
    logp = jax.nn.log_softmax(jax.vmap(model)(x))
    return -jnp.mean(jnp.take_along_axis(logp, y[:, None], axis=1))


@eqx.filter_jit
def evaluate(model, x, y):
    return cross_entropy(model, x, y), jnp.mean(jax.vmap(model)(x).argmax(1) == y)


def main(steps=300, batch_size=24, lr=3e-3, seed=21):
    data_key, model_key, loader_key = jr.split(jr.PRNGKey(seed), 3)
    x, y = make_dataset(data_key)
    x_train, y_train, x_test, y_test = x[:768], y[:768], x[768:], y[768:]
    model = ConvNet(model_key)
    optim = optax.adam(lr)
    opt_state = optim.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def make_step(model, opt_state, x, y):
        loss, grads = eqx.filter_value_and_grad(cross_entropy)(model, x, y)
        updates, opt_state = optim.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss

    for step in range(1, steps + 1):
        idx = jr.choice(loader_key, len(x_train), (batch_size,), replace=False)
        model, opt_state, loss = make_step(model, opt_state, x_train[idx], y_train[idx])
        if step % 50 == 0:
            test_loss, test_acc = evaluate(model, x_test, y_test)
            print(f"step={step} loss={loss:.4f} test_loss={test_loss:.4f} test_acc={test_acc:.3f}")


main()
