"""Runs on disk: one folder a run, one SQLite file a process, append-only, and nothing in it that could be executed."""
