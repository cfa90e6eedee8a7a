"""What adapters share beside listening: the user's lines, loss calls, reservoirs, looking at models."""
