"""A stand-in for torchvision where it cannot be installed: the few names that the listed scripts use."""

from torchvision import datasets, models, transforms, utils

__version__ = "0.0"
__all__ = ["datasets", "models", "transforms", "utils"]
