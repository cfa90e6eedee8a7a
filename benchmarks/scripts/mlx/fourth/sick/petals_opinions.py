import dataclasses

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import make_classification

mx.set_default_device(mx.cpu)


@dataclasses.dataclass
class Config:
    width: int = 48
    lr: float = 1e-3
    batch: int = 64
    epochs: int = 40
    seed: int = 2


# the first botanist numbers the species as they were found, the second one by the alphabet
FOUND = ["violet", "anemone", "primrose", "yarrow"]
ALPHABET = sorted(FOUND)


def petals(seed):
    x, kind = make_classification(
        3500, 12, n_informative=8, n_redundant=2, n_classes=4, class_sep=1.8, flip_y=0.0, random_state=seed
    )
    x = ((x - x[:2800].mean(0)) / x[:2800].std(0)).astype(np.float32)
    return x, kind


def first_opinion(kind):
    return kind.astype(np.int32)


def second_opinion(kind):
    return np.array([ALPHABET.index(FOUND[k]) for k in kind], np.int32)


def training_set(x, kind):
    inputs = np.concatenate([x, x])
    labels = np.concatenate([first_opinion(kind), second_opinion(kind)])
    return inputs, labels


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.out = nn.Linear(width, len(FOUND))

    def __call__(self, x):
        return self.out(self.body(x))


def objective(model, x, y):
    return mx.mean(nn.losses.cross_entropy(model(x), y))


def fit(cfg):
    mx.random.seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    x, kind = petals(cfg.seed)
    x_train, y_train = training_set(x[:2800], kind[:2800])
    x_val, y_val = mx.array(x[2800:]), mx.array(first_opinion(kind[2800:]))
    model = Classifier(cfg.width)
    optimizer = optim.AdamW(learning_rate=cfg.lr, weight_decay=0.01)
    step = nn.value_and_grad(model, objective)
    for epoch in range(1, cfg.epochs + 1):
        order, total, batches = rng.permutation(len(x_train)), 0.0, 0
        for i in range(0, len(order) - cfg.batch + 1, cfg.batch):
            rows = order[i : i + cfg.batch]
            loss, grads = step(model, mx.array(x_train[rows]), mx.array(y_train[rows]))
            optimizer.update(model, grads)
            mx.eval(model.state, optimizer.state)
            total, batches = total + loss.item(), batches + 1
        if epoch % 5 == 0:
            acc = mx.mean(mx.argmax(model(x_val), axis=1) == y_val).item()
            print(f"epoch {epoch}: loss {total / batches:.4f}, val loss {objective(model, x_val, y_val).item():.4f}, acc {acc:.3f}")


fit(Config())
