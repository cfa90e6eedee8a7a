"""PyTorch."""

from sleuth.adapters.torch import compat as compat
from sleuth.adapters.torch.adapter import TorchAdapter

ADAPTER = TorchAdapter()
