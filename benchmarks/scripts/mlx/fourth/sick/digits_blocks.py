import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.set_default_device(mx.cpu)


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        self.norm = nn.LayerNorm(n_out)

    def __call__(self, x):
        return nn.relu(self.norm(self.linear(x)))


class Tower(nn.Module):
    """Narrowing blocks, then a linear read-out."""

    def __init__(self, widths, classes):
        super().__init__()
        self._blocks = [Block(a, b) for a, b in zip(widths[:-1], widths[1:])]
        self.readout = nn.Linear(widths[-1], classes)

    def __call__(self, x):
        for block in self._blocks:
            x = block(x)
        return self.readout(x)


def batches(x, y, size, rng):
    order = rng.permutation(len(x))
    for i in range(0, len(x) - size + 1, size):
        rows = order[i : i + size]
        yield mx.array(x[rows]), mx.array(y[rows])


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


def evaluate(model, x, y):
    logits = model(mx.array(x))
    y = mx.array(y)
    loss = nn.losses.cross_entropy(logits, y, reduction="mean")
    return loss.item(), mx.mean(mx.argmax(logits, -1) == y).item()


def main(args):
    mx.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = load_digits(return_X_y=True)
    x = ((x / 16.0 - 0.305) / 0.376).astype(np.float32)
    x_train, x_val, y_train, y_val = train_test_split(
        x, y.astype(np.int32), test_size=0.25, random_state=args.seed, stratify=y
    )
    model = Tower([64, 48, 32, 16], 10)
    schedule = optim.cosine_decay(args.lr, args.epochs * (len(x_train) // args.batch))
    optimizer = optim.AdamW(learning_rate=schedule, weight_decay=0.02)
    value_and_grad = nn.value_and_grad(model, loss_fn)
    for epoch in range(1, args.epochs + 1):
        losses = []
        for xb, yb in batches(x_train, y_train, args.batch, rng):
            loss, grads = value_and_grad(model, xb, yb)
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        if epoch % 4 == 0:
            val_loss, acc = evaluate(model, x_val, y_val)
            print(f"epoch {epoch:2d} | loss {np.mean(losses):.4f} | val {val_loss:.4f} | acc {acc:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=6)
    main(parser.parse_args())
