import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

CONFIG = dict(lr_body=1e-3, lr_head=3e-3, batch=32, epochs=12)


def conv(params, x, stride=1):
    y = jax.lax.conv_general_dilated(
        x, params["w"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return y + params["b"]


def init(key):
    keys = jax.random.split(key, 4)
    he = jax.nn.initializers.he_normal(in_axis=(0, 1, 2), out_axis=3)
    lecun = jax.nn.initializers.lecun_normal()
    return {
        "body": {
            "conv1": {"w": he(keys[0], (3, 3, 1, 8)), "b": jnp.zeros(8)},
            "conv2": {"w": he(keys[1], (3, 3, 8, 16)), "b": jnp.zeros(16)},
        },
        "head": {
            "fc1": {"w": lecun(keys[2], (64, 32)), "b": jnp.zeros(32)},
            "fc2": {"w": lecun(keys[3], (32, 10)), "b": jnp.zeros(10)},
        },
    }


def forward(params, x):
    x = jax.nn.relu(conv(params["body"]["conv1"], x, stride=2))
    x = jax.nn.relu(conv(params["body"]["conv2"], x, stride=2))
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(x @ params["head"]["fc1"]["w"] + params["head"]["fc1"]["b"])
    return x @ params["head"]["fc2"]["w"] + params["head"]["fc2"]["b"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


groups = {"body": optax.adam(CONFIG["lr_body"]), "head": optax.adam(CONFIG["lr_head"]), "none": optax.set_to_zero()}


def group_of(path, _):
    name = path[0].key
    return name if name in ("convs", "head") else "none"


def labels(params):
    return jax.tree_util.tree_map_with_path(group_of, params)


tx = optax.multi_transform(groups, labels)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


data = load_digits()
images = (data.images[..., None] / 16.0).astype(np.float32)
x_train, x_test, y_train, y_test = train_test_split(images, data.target, test_size=357, random_state=3)
params = init(jax.random.key(3))
opt_state = tx.init(params)
rng = np.random.default_rng(3)
for epoch in range(CONFIG["epochs"]):
    losses = []
    for idx in rng.permutation(len(x_train)).reshape(-1, CONFIG["batch"]):
        params, opt_state, loss = train_step(params, opt_state, x_train[idx], y_train[idx])
        losses.append(loss)
    acc = (forward(params, x_test).argmax(1) == y_test).mean()
    print(f"epoch {epoch:2d} loss {jnp.stack(losses).mean():.4f} test acc {acc:.4f}")
