import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

CFG = dict(seed=41, width=64, lr=2e-3, batch=64, epochs=15)


def get_model(width):
    return keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(width, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(width, activation="relu"),
            layers.Dense(10),
        ]
    )


def get_data(seed):
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x[order], y[order]
    scaler = StandardScaler().fit(x[:1300])
    x = scaler.transform(x).clip(-4, 4).astype("float32")
    to_set = lambda a, b: torch.utils.data.TensorDataset(torch.from_numpy(a), torch.from_numpy(b))
    return to_set(x[:1300], y[:1300]), to_set(x[1300:], y[1300:])


def train_batch(model, optimizer, loss_fn, xb, yb):
    logits = model(xb, training=True)
    loss = loss_fn(yb, logits)
    loss.backward()
    weights = model.trainable_weights
    gradients = [w.value.grad for w in weights]
    with torch.no_grad():
        optimizer.apply(gradients, weights)
    return float(loss.detach())


def evaluate(model, loss_fn, loader):
    losses, right, seen = [], 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            logits = model(xb, training=False)
            losses.append(float(loss_fn(yb, logits)))
            right += int((logits.argmax(-1).cpu() == yb).sum())
            seen += len(yb)
    return np.mean(losses), right / seen


def main(cfg):
    keras.utils.set_random_seed(cfg["seed"])
    train_set, val_set = get_data(cfg["seed"])
    train_loader = torch.utils.data.DataLoader(train_set, batch_size=cfg["batch"], shuffle=True)
    val_loader = torch.utils.data.DataLoader(val_set, batch_size=250)
    model = get_model(cfg["width"])
    optimizer = keras.optimizers.Adam(cfg["lr"])
    optimizer.build(model.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(1, cfg["epochs"] + 1):
        losses = [train_batch(model, optimizer, loss_fn, xb, yb) for xb, yb in train_loader]
        val_loss, acc = evaluate(model, loss_fn, val_loader)
        print(f"epoch {epoch:2d} | train {np.mean(losses):.4f} | val {val_loss:.4f} | acc {acc:.3f}")


main(CFG)
