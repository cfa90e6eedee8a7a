import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

SEED, EPOCHS, BATCH = 2, 50, 16
mx.random.seed(SEED)
np.random.seed(SEED)

wine = load_wine()
X = StandardScaler().fit_transform(wine.data).astype(np.float32)
Y = wine.target.astype(np.int32)
mask = np.random.rand(len(X)) < 0.8
X_train, Y_train, X_test, Y_test = X[mask], Y[mask], mx.array(X[~mask]), mx.array(Y[~mask])

model = nn.Sequential(nn.Linear(13, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3))
mx.eval(model.parameters())

lr_schedule = optim.exponential_decay(2e-2, 0.85)
optimizer = optim.SGD(learning_rate=lr_schedule)


def loss_fn(x, y):
    return nn.losses.cross_entropy(model(x), y).mean()


grad_fn = nn.value_and_grad(model, loss_fn)


def run_epoch():
    total = 0.0
    order = np.random.permutation(len(X_train))
    batches = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
    for batch in batches:
        loss, grads = grad_fn(mx.array(X_train[batch]), mx.array(Y_train[batch]))
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        total += loss.item()
    return total / len(batches)


for epoch in range(EPOCHS):
    train_loss = run_epoch()
    if (epoch + 1) % 5 == 0:
        accuracy = mx.mean(mx.argmax(model(X_test), axis=1) == Y_test).item()
        print(f"epoch {epoch + 1} train_loss={train_loss:.4f} test_accuracy={accuracy:.3f}")
