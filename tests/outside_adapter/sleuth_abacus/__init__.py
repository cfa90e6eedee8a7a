"""Models of Abacus: the adapter that the entry point names."""

from sleuth_abacus.adapter import AbacusAdapter

ADAPTER = AbacusAdapter()
