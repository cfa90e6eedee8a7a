"""The dashboard: a server for one person on one machine. It reads runs, changes nothing and judges in Python."""
