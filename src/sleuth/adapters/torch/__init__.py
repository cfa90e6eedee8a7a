"""PyTorch."""

from sleuth.adapters.torch.adapter import TorchAdapter

ADAPTER = TorchAdapter()
