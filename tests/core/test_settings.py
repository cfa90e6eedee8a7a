"""[tool.sleuth] is read, and what is wrong in it is said in one sentence."""

import pytest

from sleuth import UnusableInput
from sleuth.checks import all_checks
from sleuth.core.settings import read_configuration


def read(tmp_path, text: str):
    (tmp_path / "pyproject.toml").write_text(text)
    folder = tmp_path / "deep" / "down"
    folder.mkdir(parents=True)
    return read_configuration(folder, all_checks())


def test_the_nearest_file_above_is_read(tmp_path) -> None:
    found = read(
        tmp_path,
        """
        [tool.sleuth]
        select = ["T407", "forward-fails"]
        ignore = { frozen-parameters = "the trunk is pretrained" }
        [tool.sleuth.thresholds.vanishing-gradients]
        faded = 1e-6
        """,
    )
    assert found.select == ("T407", "forward-fails")
    assert found.ignore == {"frozen-parameters": "the trunk is pretrained"}
    assert found.thresholds == {"vanishing-gradients": {"faded": 1e-6}}


def test_no_file_means_the_defaults(tmp_path) -> None:
    assert read(tmp_path, "").select == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('select = ["vanishing-gradient"]', "Did you mean vanishing-gradients?"),
        ("selects = []", "has no setting 'selects'"),
        ('ignore = ["T407"]', "a table with a reason each"),
        ('ignore = { T407 = "" }', "needs a reason in words"),
        ("thresholds = { T407 = { fade = 1 } }", "it has: faded"),
        ('thresholds = { T407 = { faded = "low" } }', "must be a number"),
        ("select = [", "cannot be read"),
    ],
)
def test_a_mistake_is_named(tmp_path, text: str, message: str) -> None:
    with pytest.raises(UnusableInput, match=r"pyproject\.toml") as caught:
        read(tmp_path, f"[tool.sleuth]\n{text}\n")
    assert message in str(caught.value)
