"""Instruments: each looks at one thing and returns numbers that can be drawn. One function a file."""
