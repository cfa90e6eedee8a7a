"""The user's line is shown with its neighbours, and nothing else of the reader's files ever is."""

from pathlib import Path

import pytest

from sleuth.core.location import Location
from sleuth.views.webpage.source import excerpt

LINES = "before = 1\nloss.backward()  # <here>\nafter = 2\n"


def test_the_line_stands_out_among_its_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(LINES)
    html = excerpt(Location(str(file), 2, "loss.backward()  # <here>"))
    assert "<span class=here><i>2</i> loss.backward()  # &lt;here&gt;" in html
    assert "before = 1" in html
    assert "after = 2" in html


OTHERS = {
    "changed since": ("train.py", 2, "loss.step()"),
    "no source": ("secrets.txt", 2, "loss.backward()  # <here>"),
    "nothing quoted": ("train.py", 1, ""),
    "too short": ("train.py", 9, "loss.backward()"),
    "no such line": ("train.py", 0, "other"),
}


@pytest.mark.parametrize("name, line, text", OTHERS.values(), ids=OTHERS)
def test_a_file_that_does_not_say_so_is_not_shown(tmp_path: Path, name: str, line: int, text: str) -> None:
    """It was changed since, or a stranger's run points at a file of the reader's."""
    file = tmp_path / name
    file.write_text(LINES)
    html = excerpt(Location(str(file), line, text))
    assert "before" not in html
    assert "after" not in html
