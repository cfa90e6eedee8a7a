"""Looking at a model for its own sake: its parts, one forward pass, and what pictures are made of."""
