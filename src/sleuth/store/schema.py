"""The tables of a run. A version that is not ours is refused with its number; older ones stay readable."""

VERSION = 1

TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS paths (number INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, step INTEGER, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS frames (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, role TEXT NOT NULL, paths INTEGER NOT NULL,
    sampled INTEGER NOT NULL, body BLOB NOT NULL, exponents BLOB
);
"""
# `number` counts over log and frames together: it is the order in which things were seen.
