import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(2 * 2 * 16, 32)
        self.fc2 = nn.Linear(32, 10)

    def __call__(self, x):
        x = self.pool(nn.relu(self.conv1(x)))
        x = self.pool(nn.relu(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)
        return self.fc2(nn.relu(self.fc1(x)))


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def load(seed):
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    images = (digits.images[order][..., None] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    return images[:1440], labels[:1440], images[1440:], labels[1440:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--seed", type=int, default=15)
    args = parser.parse_args()

    mx.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train_x, train_y, test_x, test_y = load(args.seed)
    model = LeNet()
    mx.eval(model.parameters())
    optimizer = optim.Adam(learning_rate=args.lr)
    loss_and_grad = nn.value_and_grad(model, loss_fn)
    for epoch in range(args.epochs):
        losses = []
        for idx in rng.permutation(len(train_x)).reshape(-1, args.batch):
            loss, grads = loss_and_grad(model, mx.array(train_x[idx]), mx.array(train_y[idx]))
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        acc = mx.mean(mx.argmax(model(mx.array(test_x)), axis=1) == mx.array(test_y)).item()
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, test accuracy {acc:.3f}")


main()
