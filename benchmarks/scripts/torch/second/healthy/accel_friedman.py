"""Regression with Accelerate and gradient accumulation."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(batch_size):
    X, y = make_friedman1(n_samples=4000, n_features=8, noise=0.5, random_state=3)
    y = y[:, None]
    sx, sy = StandardScaler().fit(X[:3200]), StandardScaler().fit(y[:3200])
    X = torch.tensor(sx.transform(X), dtype=torch.float32)
    y = torch.tensor(sy.transform(y), dtype=torch.float32)
    train = DataLoader(TensorDataset(X[:3200], y[:3200]), batch_size=batch_size, shuffle=True)
    return train, DataLoader(TensorDataset(X[3200:], y[3200:]), batch_size=400)


def build(n_in, width=64):
    return nn.Sequential(nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))


def main(epochs=16, batch_size=16, accumulate=4):
    set_seed(3)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    train_loader, val_loader = make_loaders(batch_size)
    model = build(8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader) // accumulate)
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, val_loader, scheduler
    )
    loss_fn = nn.MSELoss()
    for epoch in range(1, epochs + 1):
        model.train()
        running = 0.0
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = loss_fn(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            running += loss.detach().item()
        model.eval()
        errors = []
        for x, y in val_loader:
            with torch.inference_mode():
                errors.append(accelerator.gather_for_metrics(loss_fn(model(x), y)))
        if epoch % 4 == 0:
            accelerator.print(
                f"epoch {epoch}: train {running / len(train_loader):.4f}  val {torch.stack(errors).mean():.4f}"
            )


if __name__ == "__main__":
    main()
