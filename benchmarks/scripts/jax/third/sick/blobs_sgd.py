import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

BATCH = 64
BASE_LR = 0.4
EPOCHS = 15
CLASSES = 6


class Data:
    def __init__(self, seed):
        x, y = make_blobs(n_samples=3000, n_features=12, centers=2 * CLASSES, cluster_std=4.0, random_state=seed)
        y = y % CLASSES
        x = StandardScaler().fit_transform(x).astype("float32")
        self.x_train, self.y_train = x[:2400], y[:2400]
        self.x_test, self.y_test = x[2400:], y[2400:]
        self.rng = np.random.default_rng(seed)

    def batches(self):
        order = self.rng.permutation(len(self.x_train))
        for i in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[i : i + BATCH]
            yield self.x_train[rows], self.y_train[rows]


def init_params(key):
    he = jax.nn.initializers.he_normal()
    k1, k2 = jax.random.split(key)
    return {
        "hidden": {"kernel": he(k1, (12, 64)), "bias": jnp.zeros(64)},
        "logits": {"kernel": he(k2, (64, CLASSES)), "bias": jnp.zeros(CLASSES)},
    }


def apply(params, x):
    h = jax.nn.relu(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    return h @ params["logits"]["kernel"] + params["logits"]["bias"]


def objective(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()


def main():
    data = Data(seed=9)
    params = init_params(jax.random.key(0))
    # linear scaling rule: the base rate is for batches of 256
    lr = BASE_LR * (BATCH // 256)
    tx = optax.sgd(lr, momentum=0.9, nesterov=True)
    opt_state = tx.init(params)

    @jax.jit
    def step(params, opt_state, x, y):
        value, grads = jax.value_and_grad(objective)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    for epoch in range(EPOCHS):
        values = []
        for x, y in data.batches():
            params, opt_state, value = step(params, opt_state, x, y)
            values.append(value)
        acc = (apply(params, data.x_test).argmax(1) == data.y_test).mean()
        print(f"epoch {epoch}: loss {np.mean(values):.4f} test accuracy {float(acc):.4f}")


main()
