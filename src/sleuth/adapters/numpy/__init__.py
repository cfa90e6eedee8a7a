"""Models written by hand in NumPy: the reference that every other adapter must equal."""

from sleuth.adapters.numpy.adapter import NumpyAdapter

ADAPTER = NumpyAdapter()
