"""Parts of the benchmark of watching: trainings, ways of watching them, and steps taken in turns."""
