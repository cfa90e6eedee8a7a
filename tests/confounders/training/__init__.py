"""Illnesses of the loop and of the course it takes."""
