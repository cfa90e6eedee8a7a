import sys

import torch
import torch.distributed as dist
from material import Net, X, Y
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(Net())
optimiser = torch.optim.SGD(model.parameters(), 0.05)
for _ in range(30):
    rows = torch.randint(0, len(Y), (32,))
    functional.cross_entropy(model(X[rows]), Y[rows]).backward()
    optimiser.step()
sys.stdout.write(f"{sum(p.double().sum().item() for p in model.parameters())}\n")
dist.destroy_process_group()
