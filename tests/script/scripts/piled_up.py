import os
import signal
import sys
import time

import torch
from material import Net, X, Y, digest
from torch.nn import functional

os.chdir("/")
torch.manual_seed(0)
model = Net()
optimiser = torch.optim.SGD(model.parameters(), 0.05)
for step in range(60):
    rows = torch.randint(0, len(Y), (32,))
    loss = functional.cross_entropy(model(X[rows]), Y[rows])
    if "meant" in sys.argv:
        loss.backward()  # sleuth: ignore[missing-zero-grad] gradients pile up on purpose
    else:
        loss.backward()
    if "crash" in sys.argv and step == 30:
        model(X[rows][:, :60])
    optimiser.step()
    if "kill" in sys.argv and step == 50:
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGKILL)
print(digest(model))
sys.exit(int(sys.argv[1]))
