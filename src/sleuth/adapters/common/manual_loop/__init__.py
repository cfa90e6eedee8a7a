"""Loops that the user wrote by hand around arrays that change: what NumPy's and Mithril's adapters read off them."""
