"""What touches Python itself: imports, frames, random states, clocks, nested containers."""
