"""The JSON report that others build on, and reading it back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sleuth
from sleuth import UnusableInput
from sleuth.core.location import Location
from tests.views import reports

TOP = (
    "schema",
    "status",
    "source",
    "framework",
    "steps",
    "culprits",
    "findings",
    "ignored",
    "clear",
    "not_examined",
    "stages",
    "overhead",
)
FINDING = ("code", "name", "stage", "severity", "confidence", "where", "location", "summary", "fix", "numbers")


def test_the_agreed_fields_are_there() -> None:
    table = json.loads(reports.sick().to_json())
    assert set(TOP) <= set(table)
    assert (table["schema"], table["status"], table["source"], table["framework"]) == (1, "sick", "examine", "torch")
    culprit = table["culprits"][0]
    assert {*FINDING, "symptoms", "proof"} <= set(culprit)
    assert culprit["symptoms"] == ["cannot-overfit-one-batch"]
    assert culprit["location"]["file"] == "train.py"
    assert culprit["location"]["line"] == 23
    for finding in table["findings"]:
        assert {*FINDING, "explained_by"} <= set(finding)
    assert [f["explained_by"] for f in table["findings"]] == [None, "double-softmax", None]
    assert table["ignored"] == [{"name": "learning-rate-too-high", "reason": "we warm up for 1,000 steps", "location": None}]
    assert table["not_examined"][0] == {"name": "train-val-overlap", "reason": "no validation data was given"}
    assert table["stages"]["data"] == {"clear": 1, "found": 1, "not_examined": 2}
    assert table["overhead"] is None


def test_why_it_may_not_be_called_healthy_is_a_field() -> None:
    table = json.loads(reports.unanswered().to_json())
    assert table["status"] == "unknown"
    assert "ends above its start" in table["unanswered"]
    assert json.loads(reports.healthy().to_json())["unanswered"] == ""


def test_numbers_are_finite_or_null() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    table = json.loads(reports.sick().to_json(), parse_constant=refuse)
    assert table["culprits"][0]["numbers"] == {"rows": 32, "worst": None}
    assert table["culprits"][0]["series"][0]["y"] == [2.3, None]


@pytest.mark.parametrize("name", reports.ALL)
def test_a_saved_report_comes_back_the_same(name: str, tmp_path: Path) -> None:
    report = reports.ALL[name]()
    read = sleuth.load(report.save(tmp_path / "report.json"))
    assert read.to_json() == report.to_json()
    assert read.to_text() == report.to_text()
    assert read.to_html() == report.to_html()
    assert read.status == report.status


def test_a_file_below_the_current_folder_is_named_from_there(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location(str(tmp_path / "code" / "train.py"), 1).short_file == str(Path("code", "train.py"))
    assert Location(str(tmp_path.parent / "train.py"), 1).short_file == str(tmp_path.parent / "train.py")


def test_a_name_with_half_a_character_is_saved(tmp_path: Path) -> None:
    report = replace(reports.healthy(), subject="bad\udc80name")
    for ending in (".json", ".txt", ".html"):
        assert report.save(tmp_path / f"report{ending}").exists()
    assert sleuth.load(tmp_path / "report.json").subject == report.subject


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        (b"\x89PNG\xff", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1, 2]", "not a report of sleuth"),
        (b"{}", "not a report of sleuth"),
        (b'{"schema": "one", "findings": []}', "not a report of sleuth"),
        (b'{"schema": 99, "findings": []}', "newer sleuth"),
        (b'{"schema": 1, "findings": []}', "damaged report"),
        (b'{"schema": 1, "findings": [{"code": "X"}]}', "damaged report"),
        (b'{"schema": 1, "findings": 7}', "damaged report"),
    ],
)
def test_what_is_no_report_is_refused_in_words(content: bytes | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableInput, match=message):
        sleuth.load(file)


def test_a_folder_without_a_run_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="holds no run"):
        sleuth.load(tmp_path)


def test_an_unknown_ending_is_refused_with_those_that_work(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"\.json, \.txt, \.html"):
        reports.healthy().save(tmp_path / "report.pdf")
