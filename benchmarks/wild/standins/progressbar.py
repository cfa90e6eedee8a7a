"""A stand-in for progressbar: shows nothing."""

from collections.abc import Iterable
from typing import Any


class ProgressBar:
    def __init__(self, **_: Any) -> None:
        pass

    def __call__(self, items: Iterable[Any]) -> Iterable[Any]:
        return items


class Percentage:
    pass


class ETA:
    pass


class Bar:
    def __init__(self, **_: Any) -> None:
        pass
