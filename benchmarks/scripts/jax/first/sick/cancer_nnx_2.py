import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class TabularNet(nnx.Module):
    def __init__(self, features, hidden, *, rngs):
        self.fc1 = nnx.Linear(features, hidden, rngs=rngs)
        self.bn1 = nnx.BatchNorm(hidden, momentum=0.9, rngs=rngs)
        self.drop1 = nnx.Dropout(0.4, rngs=rngs)
        self.fc2 = nnx.Linear(hidden, hidden, rngs=rngs)
        self.drop2 = nnx.Dropout(0.4, rngs=rngs)
        self.out = nnx.Linear(hidden, 1, rngs=rngs)

    def __call__(self, x):
        x = self.drop1(nnx.relu(self.bn1(self.fc1(x))))
        x = self.drop2(nnx.relu(self.fc2(x)))
        return self.out(x).squeeze(-1)


def bce(model, x, y):
    return optax.sigmoid_binary_cross_entropy(model(x), y).mean()


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(bce)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def predict(model, x):
    return jax.nn.sigmoid(model(x))


def validate(model, x, y, batch_size=38):
    probs = [predict(model, x[i : i + batch_size]) for i in range(0, len(x), batch_size)]
    probs = jnp.concatenate(probs)
    nll = -jnp.mean(jnp.where(y == 1, jnp.log(probs + 1e-7), jnp.log(1 - probs + 1e-7)))
    return float(nll), float(((probs > 0.5) == y).mean())


X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=12, stratify=y)
scaler = StandardScaler().fit(X_train)
X_train, X_val = scaler.transform(X_train).astype(np.float32), scaler.transform(X_val).astype(np.float32)
y_train, y_val = y_train.astype(np.float32), y_val.astype(np.float32)

model = TabularNet(30, 48, rngs=nnx.Rngs(params=12, dropout=13))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
generator = np.random.default_rng(12)
best = float("inf")
for epoch in range(25):
    model.train()
    order = generator.permutation(len(X_train))
    losses = []
    for i in range(0, 448, 32):
        idx = order[i : i + 32]
        losses.append(float(train_step(model, optimizer, X_train[idx], y_train[idx])))
    val_loss, val_acc = validate(model, X_val, y_val)
    best = min(best, val_loss)
    if epoch % 4 == 0:
        print(f"epoch {epoch} train {np.mean(losses):.4f} val {val_loss:.4f} acc {val_acc:.4f} best {best:.4f}")
