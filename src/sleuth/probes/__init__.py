"""One experiment a file. A probe asks the adapter for an experiment and emits what it measured."""
