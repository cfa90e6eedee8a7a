"""What adapters share when a model is only looked at."""
