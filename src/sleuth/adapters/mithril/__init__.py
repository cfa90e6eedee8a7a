"""Mithril: logical models with a backend, and the physical models that they are compiled to."""

from sleuth.adapters.mithril import compat as compat
from sleuth.adapters.mithril.adapter import MithrilAdapter

ADAPTER = MithrilAdapter()
