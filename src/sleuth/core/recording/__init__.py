"""A run as it is kept and read back."""
