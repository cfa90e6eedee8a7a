"""Fingerprints of samples: which are the same, and which nearly the same."""
