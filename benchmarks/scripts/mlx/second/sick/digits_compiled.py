import argparse
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.set_default_device(mx.cpu)


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.fc1 = nn.Linear(12 * 4 * 4, hidden)
        self.fc2 = nn.Linear(hidden, 10)

    def __call__(self, x):
        x = self.pool(nn.relu(self.conv(x)))
        x = x.reshape(x.shape[0], -1)
        x = nn.relu(self.fc1(x))
        return mx.softmax(self.fc2(x), axis=-1)


def loss_fn(model, x, y):
    return mx.mean(nn.losses.cross_entropy(model(x), y))


def main(args):
    mx.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    images = load_digits().images[..., None].astype(np.float32) / 16.0
    xtr, xte, ytr, yte = train_test_split(images, load_digits().target, test_size=0.2, random_state=args.seed)
    xte, yte = mx.array(xte), mx.array(yte)

    model = Net(args.hidden)
    optimizer = optim.SGD(learning_rate=args.lr, momentum=0.9)
    mx.eval(model.parameters())
    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, grads = nn.value_and_grad(model, loss_fn)(model, x, y)
        optimizer.update(model, grads)
        return loss

    for epoch in range(args.epochs):
        order = rng.permutation(len(xtr))
        losses = []
        for i in range(0, len(order) - args.batch + 1, args.batch):
            b = order[i : i + args.batch]
            loss = step(mx.array(xtr[b]), mx.array(ytr[b]))
            mx.eval(state)
            losses.append(loss.item())
        acc = mx.mean(mx.argmax(model(xte), axis=1) == yte).item()
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, accuracy {acc:.3f}")


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.03)
parser.add_argument("--seed", type=int, default=0)
main(parser.parse_args())
