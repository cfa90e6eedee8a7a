"""The report that people read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sleuth.core.diagnosis import Culprit
from sleuth.core.location import Location
from sleuth.views import terminal
from sleuth.views.sheet import Sheet, Span, clean, speakable, wrap
from sleuth.views.wording import sentence
from tests.views import reports


@pytest.mark.parametrize("name", reports.ALL)
def test_a_report_reads_as_agreed(name: str, golden) -> None:
    golden(f"reports/{name}.txt", terminal.render(reports.ALL[name]()) + "\n")


@pytest.mark.parametrize("name", reports.ALL)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_screen_or_ends_in_spaces(name: str, width: int) -> None:
    for line in terminal.write(reports.ALL[name](), width).plain().splitlines():
        assert cell_len(line) <= width, line
        assert line == line.rstrip(), repr(line)


def test_the_answer_stands_in_the_first_lines() -> None:
    lines = terminal.render(reports.sick()).splitlines()
    assert lines[0] == "sleuth · train.py:training · examined in 12 s · torch 2.13.0"
    assert lines[2] == "✗ double-softmax  M205 · error · certain"
    assert any("train.py:23" in line for line in lines[:8])
    assert any(line.startswith("  Do:") for line in lines[:12])


def test_an_equal_reason_is_told_once() -> None:
    assert terminal.render(reports.sick()).count("no validation data was given") == 1


def test_names_that_would_steer_the_terminal_are_shown_as_signs() -> None:
    hostile = "evil\x1b[31mred\r\n\x07\u202etxet"
    culprit = Culprit(replace(reports.DOUBLE_SOFTMAX, where=hostile, location=Location(hostile, 1, hostile)), ())
    text = terminal.render(reports.report(culprit, subject=hostile, notes=(hostile,)))
    assert not set(text) & set("\x1b\r\x07\u202e")


WIDE = "".join(map(chr, [0x65E5, 0x672C, 0x8A9E])) * 40


@pytest.mark.parametrize("name", [WIDE, "x" * 300, "a/" * 200 + "train.py", "e\u0301" * 120, "\U0001f9ea" * 70])
def test_long_and_wide_names_do_not_break_the_width(name: str) -> None:
    finding = replace(
        reports.DOUBLE_SOFTMAX, where=name, summary=f"{name} is ill, {name}", fix=name, location=Location(name, 12345, name)
    )
    text = terminal.render(reports.report(Culprit(finding, ()), subject=name, notes=(name,)))
    assert max(cell_len(line) for line in text.splitlines()) <= 80


@given(st.text(max_size=200), st.integers(10, 80))
def test_wrapping_keeps_every_shown_character_and_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(" ".join(text.split())).split())


def test_a_row_that_does_not_fit_is_wrapped() -> None:
    sheet = Sheet(20)
    sheet.row(Span("  some words "), Span("that go on and on and on"))
    assert sheet.plain().splitlines() == ["  some words that go", "  on and on and on"]


def test_a_console_without_the_signs_gets_plain_letters() -> None:
    assert speakable("✗ 1 → 2 · ok", "ascii") == "x 1 -> 2 | ok"
    assert speakable("✗ 1 → 2 · ok", "utf-8") == "✗ 1 → 2 · ok"
    assert speakable("日", "latin-1") == "?"


def test_show_prints_plain_text_where_nobody_looks(capsys) -> None:
    reports.sick().show()
    assert capsys.readouterr().out == terminal.render(reports.sick()) + "\n"


def test_show_colours_where_a_person_looks(capsys, monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    reports.sick().show()
    coloured = capsys.readouterr().out
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    reports.sick().show()
    plain = capsys.readouterr().out
    assert "\x1b[31m" not in plain
    assert "double-softmax" in plain


def test_a_sentence_keeps_the_spelling_of_a_name_in_front() -> None:
    assert sentence("the loss is flat") == "The loss is flat."
    assert sentence("hidden is a plain list", "hidden") == "hidden is a plain list."
    assert sentence("fc1.weight is zero. Really!") == "fc1.weight is zero. Really!"
    assert sentence("") == ""
