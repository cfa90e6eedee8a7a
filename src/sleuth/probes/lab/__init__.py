"""What probes work with: the bench, the data, the clock, and changes that several of them make."""
