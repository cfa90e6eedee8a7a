"""The tables of a run. A version that is not ours is refused with its number; older ones stay readable."""

# 1: steps stood in `log`, texts in `paths`, and exponents were not compressed.
# 2: steps had two more columns, which nobody filled.
VERSION = 3

TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS texts (number INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, step INTEGER, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps (
    number INTEGER PRIMARY KEY, step INTEGER, optimiser INTEGER, loss REAL, lr REAL, gradient_norm REAL,
    seconds BLOB NOT NULL, rest INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS frames (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, role TEXT NOT NULL, paths INTEGER NOT NULL,
    sampled INTEGER NOT NULL, body BLOB NOT NULL, exponents BLOB
);
CREATE INDEX IF NOT EXISTS log_by_kind ON log (kind);
CREATE INDEX IF NOT EXISTS frames_by_role ON frames (role);
"""
# `number` counts over log, steps and frames together: it is the order in which things were seen.
# `rest` and `paths` point into `texts`: what is the same at most steps is written once.
