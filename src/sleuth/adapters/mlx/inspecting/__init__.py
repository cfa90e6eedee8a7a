"""Looking at a model of MLX for its own sake. Work is done on a copy."""
