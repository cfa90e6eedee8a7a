"""Running somebody's script as it is."""
