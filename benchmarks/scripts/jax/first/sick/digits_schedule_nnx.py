import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits


class Block(nnx.Module):
    def __init__(self, dim, rngs):
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.fc = nnx.Linear(dim, dim, rngs=rngs)

    def __call__(self, x):
        return x + nnx.gelu(self.fc(self.norm(x)))


class ResMLP(nnx.Module):
    def __init__(self, din, dim, dout, depth, rngs):
        self.embed = nnx.Linear(din, dim, rngs=rngs)
        self.blocks = nnx.List([Block(dim, rngs) for _ in range(depth)])
        self.head = nnx.Linear(dim, dout, rngs=rngs)

    def __call__(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


config = {"epochs": 16, "batch_size": 64, "lr": 1e-3, "decay": 0.9, "depth": 3, "dim": 48, "seed": 3}

digits = load_digits()
x = ((digits.data - digits.data.mean()) / digits.data.std()).astype(np.float32)
y = digits.target.astype(np.int32)
rng = np.random.default_rng(config["seed"])
perm = rng.permutation(len(x))
x_train, y_train = x[perm[:1472]], y[perm[:1472]]
x_val, y_val = x[perm[1472:]], y[perm[1472:]]
steps_per_epoch = len(x_train) // config["batch_size"]

model = ResMLP(64, config["dim"], 10, config["depth"], nnx.Rngs(config["seed"]))
schedule = optax.exponential_decay(config["lr"], transition_steps=1, decay_rate=config["decay"])
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, xb, yb):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(xb), yb).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def evaluate(model, xb, yb):
    logits = model(xb)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, yb).mean()
    return loss, jnp.mean(logits.argmax(-1) == yb)


for epoch in range(config["epochs"]):
    order = rng.permutation(len(x_train)).reshape(steps_per_epoch, -1)
    train_loss = np.mean([train_step(model, optimizer, x_train[idx], y_train[idx]) for idx in order])
    val_loss, val_acc = evaluate(model, x_val, y_val)
    print(f"[{epoch + 1}/{config['epochs']}] train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.4f}")
