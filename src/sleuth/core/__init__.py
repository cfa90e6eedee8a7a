"""Plain data and pure logic. Imports NumPy and nothing else."""
