"""Blocks of pages that show what commands print are renewed line by line."""

import pytest

from benchmarks.studies.printed_blocks import renew_lines

PRINTED = """Systems
rrf k=60      0.5003                     baseline
convex        0.5143  +0.0140  better
! A warning of many words: 12 queries.
Written: a.json
"""


def test_numbers_are_renewed_and_dots_stay() -> None:
    shown = "...\nconvex        0.5140  +0.0137  better\n...\nWritten: a.json\n"
    assert renew_lines(shown, PRINTED) == (
        "...\nconvex        0.5143  +0.0140  better\n...\nWritten: a.json\n"
    )


def test_what_is_shown_as_printed_stays() -> None:
    assert renew_lines(PRINTED, PRINTED) == PRINTED


def test_a_line_that_nothing_is_like_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert renew_lines("Something else entirely\n", PRINTED) == "Something else entirely\n"
    assert "'Something else entirely'" in capsys.readouterr().out
