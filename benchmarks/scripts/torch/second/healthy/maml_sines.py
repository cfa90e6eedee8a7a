"""Learning to learn sine curves: an inner step by gradient, an outer one by Adam through it (MAML)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Curve(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x)


class Sine:
    def __init__(self, generator):
        self.g = generator
        self.amplitude = 0.5 + 2.0 * torch.rand(1, generator=generator)
        self.phase = math.pi * torch.rand(1, generator=generator)

    def sample(self, k):
        x = torch.rand(k, 1, generator=self.g) * 8 - 4
        return x, self.amplitude * torch.sin(x + self.phase)


def adapt(model, params, x, y, steps, rate, create_graph):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=create_graph)
        params = {name: p - rate * g for (name, p), g in zip(params.items(), grads)}
    return params


def evaluate(model, generator, tasks=50, steps=3):
    before = after = 0.0
    for _ in range(tasks):
        task = Sine(generator)
        support, query = task.sample(10), task.sample(50)
        params = dict(model.named_parameters())
        fast = adapt(model, params, *support, steps=steps, rate=0.02, create_graph=False)
        with torch.no_grad():
            before += F.mse_loss(model(query[0]), query[1]).item()
            after += F.mse_loss(functional_call(model, fast, (query[0],)), query[1]).item()
    return before / tasks, after / tasks


def main(iterations=600, meta_batch=8):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    model = Curve()
    meta_optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for it in range(1, iterations + 1):
        meta_optimizer.zero_grad()
        total = 0.0
        for _ in range(meta_batch):
            task = Sine(generator)
            x, y = task.sample(10)
            fast = adapt(model, dict(model.named_parameters()), x, y, steps=1, rate=0.02, create_graph=True)
            x, y = task.sample(10)
            loss = F.mse_loss(functional_call(model, fast, (x,)), y) / meta_batch
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        meta_optimizer.step()
        history.append(total)
        if it % 100 == 0:
            before, after = evaluate(model, torch.Generator().manual_seed(99))
            print(
                f"{it}: meta loss {sum(history[-100:]) / 100:.3f}  new tasks {before:.3f} -> {after:.3f} after 3 steps"
            )


if __name__ == "__main__":
    main()
