"""Data that is read twice."""

import torch

from tests.material import digits

X, Y = (torch.as_tensor(a[:300]) for a in digits())
