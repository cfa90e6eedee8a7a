"""Parts of the benchmark of watching: trainings of each framework, processes that take them step by step in turns."""
