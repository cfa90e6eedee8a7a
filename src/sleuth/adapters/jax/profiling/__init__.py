"""What a step of JAX costs. In one compiled program nothing has a time of its own: parts of it are compiled apart and timed."""
