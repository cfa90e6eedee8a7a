"""Looking at a model of JAX for its own sake."""
