"""Illnesses that one batch brings to light."""
