"""MLX: `mlx.nn.Module`, `nn.value_and_grad`, `mlx.optimizers`."""

from sleuth.adapters.mlx import compat as compat
from sleuth.adapters.mlx.adapter import MlxAdapter

ADAPTER = MlxAdapter()
