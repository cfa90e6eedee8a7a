"""Which cases of the grid run when: said and decided here, and nowhere else.

The grid is every case (tests/cases) in every kit (tests/kits), once sick and once healthy.

    ./dev test           the sick cases of torch, and in other frameworks those that QUICK names. The same checks judge every
                         framework, and the zoo asks every time whether they are silent: more is not needed at every change.
    ./dev test --long    what the line above leaves out: healthy cases, and the sick ones of the other frameworks
    ./dev test --full    everything
    --long --turn N      in .ci/run. All long cases outside torch take more than half an hour, so they come by turns: in each
                         turn a part of every framework's cases, and some frameworks of every case. N counts changes; so many
                         changes in a row as there are TURNS see the whole grid. Torch's long cases run at every turn.

Tests outside the grid say themselves that they are long: `@pytest.mark.long`. .ci/run leaves tests/test_confounders.py out.
"""

import pytest

TURNS = 4
# A framework that is not named here has all its sick cases tried every time.
QUICK = {
    "jax": {"double-softmax", "labels-misaligned", "vanishing-gradients"},
    "keras": {"double-softmax", "forward-fails"},  # a step of a small model takes Keras ten times as long as torch
    "mithril": {"double-softmax", "labels-misaligned", "vanishing-gradients"},
    "mlx": {"clipping-misplaced", "double-softmax", "graph-retained", "labels-misaligned", "vanishing-gradients"},
    "numpy": {"double-softmax", "forward-fails", "gradient-wrong", "labels-misaligned", "vanishing-gradients"},
}


def marks(case: str, kit: str, place: tuple[int, int], *, healthy: bool) -> list[pytest.MarkDecorator]:
    """`place`: where the case stands among the cases, and the kit among the kits."""
    if not healthy and case in QUICK.get(kit, {case}):
        return []
    return [pytest.mark.long, *([pytest.mark.turn(sum(place) % TURNS)] if kit in QUICK else [])]


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the long tests")
    parser.addoption("--long", action="store_true", help="run only the long tests")
    parser.addoption(
        "--turn", type=int, metavar="N", help=f"of the long cases outside torch, only those of turn N modulo {TURNS}"
    )


def add_markers(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: only with --full or --long")
    config.addinivalue_line("markers", "turn(n): a long case outside torch, left out by --turn of another number")


def announce(terminalreporter: pytest.TerminalReporter) -> None:
    turn = terminalreporter.config.getoption("--turn")
    if turn is not None:
        turns = f"turn {turn % TURNS} (of 0 to {TURNS - 1})"
        terminalreporter.write_line(
            f"Of the long cases outside torch those of {turns}; the others come at the next changes, and with --full."
        )


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not to run; a long test that nobody asked for is skipped, so that the summary tells of it."""
    wanted = [item for item in items if _has_its_turn(item, config.getoption("--turn"))]
    if config.getoption("--long"):
        wanted = [item for item in wanted if item.get_closest_marker("long")]
    elif not config.getoption("--full"):
        for item in wanted:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="a long test: ./dev test --full"))
    kept = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = wanted


def _has_its_turn(item: pytest.Item, turn: int | None) -> bool:
    mark = item.get_closest_marker("turn")
    return turn is None or mark is None or mark.args[0] == turn % TURNS
