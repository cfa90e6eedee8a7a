"""Hearing a script that trains a network by hand: its statements that update weights and tell a loss call us."""
