"""Simple learners, the tables they read, and what a model's training is measured against."""
