"""What a step costs: by stopwatch, by torch's own profiler and by counting."""
