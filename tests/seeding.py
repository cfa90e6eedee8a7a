"""The random state from which every test, every golden row and every page starts."""

import random
import sys

import numpy as np
import torch


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    mlx = sys.modules.get("mlx.core")
    if mlx is not None:
        mlx.random.seed(0)
