"""Looking at a Keras model: its parts, one forward pass, weights and maps."""
