"""What was replaced or changed for a while is put back, whatever raises meanwhile."""

import pytest

from sleuth.adapters.listening.patches import put_back


def test_one_that_raises_once_is_done_all_the_same_and_its_error_is_told() -> None:
    done: list[str] = []
    errors = [ValueError("once")]

    def fragile() -> None:
        if errors:
            raise errors.pop()
        done.append("fragile")

    with pytest.raises(ValueError, match="once"):
        put_back(lambda: done.append("before"), fragile, lambda: done.append("after"))
    assert done == ["before", "fragile", "after"]


def test_one_that_always_raises_does_not_keep_the_others_from_being_done() -> None:
    done: list[str] = []

    def broken() -> None:
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        put_back(broken, lambda: done.append("after"))
    assert done == ["after"]
