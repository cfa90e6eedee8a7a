"""The clock of experiments beside other work."""

from sleuth.core.runtime.clock import PATIENCE, shared_clock


class Hands:
    def __init__(self) -> None:
        self.wall = self.worked = 100.0


def clock_and_hands():
    hands = Hands()
    return shared_clock(lambda: hands.wall, lambda: hands.worked), hands


def test_a_process_that_had_half_of_the_processor_has_used_half_of_the_time() -> None:
    now, hands = clock_and_hands()
    hands.wall, hands.worked = 110.0, 105.0
    assert now() == 5.0


def test_several_threads_use_no_more_than_what_went_by() -> None:
    now, hands = clock_and_hands()
    hands.wall, hands.worked = 110.0, 140.0
    assert now() == 10.0


def test_who_only_waits_runs_out_of_time_too() -> None:
    now, hands = clock_and_hands()
    hands.wall = 100.0 + 3 * PATIENCE
    assert now() == 3.0
