"""What torch's error messages mean, by topic: each module has a table of patterns and the functions that read them."""
