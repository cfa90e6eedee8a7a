import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import make_moons

mx.set_default_device(mx.cpu)

CONFIG = {"hidden": 64, "dropout": 0.9, "lr": 3e-3, "batch": 50, "epochs": 30, "seed": 7}


class MoonNet(nn.Module):
    """Two hidden layers with dropout after each."""

    def __init__(self, hidden, dropout):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)
        self.drop = nn.Dropout(p=dropout)

    def __call__(self, x):
        x = self.drop(nn.relu(self.fc1(x)))
        x = self.drop(nn.relu(self.fc2(x)))
        return self.fc3(x).squeeze(-1)


def loss_fn(model, x, y):
    return nn.losses.binary_cross_entropy(model(x), y, reduction="mean")


def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    loss = nn.losses.binary_cross_entropy(logits, y, reduction="mean").item()
    accuracy = mx.mean((logits > 0) == (y > 0.5)).item()
    model.train()
    return loss, accuracy


def main(c):
    mx.random.seed(c["seed"])
    rng = np.random.default_rng(c["seed"])
    x, y = make_moons(1500, noise=0.15, random_state=c["seed"])
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    y = y.astype(np.float32)
    test = mx.array(x[1200:]), mx.array(y[1200:])
    model = MoonNet(c["hidden"], c["dropout"])
    optimizer = optim.Adam(learning_rate=c["lr"])
    value_and_grad = nn.value_and_grad(model, loss_fn)
    model.train()
    for epoch in range(c["epochs"]):
        order = rng.permutation(1200)
        losses = []
        for i in range(0, 1200, c["batch"]):
            rows = order[i : i + c["batch"]]
            loss, grads = value_and_grad(model, mx.array(x[rows]), mx.array(y[rows]))
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 5 == 4:
            test_loss, accuracy = evaluate(model, *test)
            print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f} test loss {test_loss:.4f} accuracy {accuracy:.3f}")


main(CONFIG)
