"""Looking at a hand-written model for its own sake. A network of plain functions has no parts: it is one."""
