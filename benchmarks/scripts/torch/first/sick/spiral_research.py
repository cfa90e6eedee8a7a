import math

import torch
import torch.nn as nn

cfg = dict(seed=17, n=1500, classes=3, hidden=64, lr=3e-3, batch=50, epochs=24, milestones=[12, 18])


def spirals(n, classes, generator):
    k = torch.arange(n) % classes
    r = torch.rand(n, generator=generator) * 0.9 + 0.1
    angle = r * 5.0 + k * 2 * math.pi / classes + 0.08 * torch.randn(n, generator=generator)
    xy = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return xy / xy.std(0), k


class Experiment:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg["seed"])
        g = torch.Generator().manual_seed(cfg["seed"])
        x, y = spirals(cfg["n"], cfg["classes"], g)
        perm = torch.randperm(len(x), generator=g)
        cut = int(0.8 * len(x))
        self.train = (x[perm[:cut]], y[perm[:cut]])
        self.val = (x[perm[cut:]], y[perm[cut:]])
        h = cfg["hidden"]
        self.net = nn.Sequential(nn.Linear(2, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, cfg["classes"]))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=cfg["lr"])
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, cfg["milestones"], gamma=0.2)

    def on_epoch_start(self, epoch):
        self.net.train()
        self.scheduler.step()

    def run(self):
        x, y = self.train
        for epoch in range(self.cfg["epochs"]):
            self.on_epoch_start(epoch)
            for idx in torch.randperm(len(x)).split(self.cfg["batch"]):
                loss = nn.functional.cross_entropy(self.net(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.validate(epoch)

    @torch.no_grad()
    def validate(self, epoch):
        self.net.eval()
        x, y = self.val
        out = self.net(x)
        loss = nn.functional.cross_entropy(out, y).item()
        acc = (out.argmax(1) == y).float().mean().item()
        if epoch % 4 == 3:
            print(f"{epoch + 1:3d} val loss {loss:.4f} acc {acc:.3f} lr {self.optimizer.param_groups[0]['lr']:.1e}")


Experiment(cfg).run()
