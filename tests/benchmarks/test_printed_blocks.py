"""Blocks of pages that are renewed from what a command prints."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.studies import classify_table, referee
from benchmarks.studies.__main__ import PARTS, ROOT, Part, make_pages
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


def test_a_line_that_nothing_is_like_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert renew_lines("Something else entirely\n", PRINTED) == "Something else entirely\n"
    assert "'Something else entirely'" in capsys.readouterr().out


def read_block(page: Path, mark: str) -> str:
    text = page.read_text(encoding="utf-8")
    return text.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0].strip()


@cache
def quick_tables() -> dict[str, str]:
    return dict(referee.make_quick_tables())


@pytest.mark.parametrize("mark", ["types", "english", "weights", "dilutions"])
def test_tables_of_the_referee_are_up_to_date(mark: str) -> None:
    made = quick_tables()[mark]
    assert read_block(referee.PAGE, mark) == made, (
        "run python -m benchmarks.studies.referee --write"
    )


def test_published_weights_by_type_are_up_to_date() -> None:
    made = classify_table.make_tables(0)
    rows = made["types"].splitlines()
    stored = read_block(classify_table.PAGE, "types").splitlines()
    assert stored[: len(rows)] == rows, "run python -m benchmarks.studies.classify_table --write"
    assert read_block(classify_table.PAGE, "agreement") == made["agreement"]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_part_has_a_module_and_a_page_with_its_mark(part: Part) -> None:
    assert find_spec(part.module) is not None
    page = (ROOT / part.page).read_text(encoding="utf-8")
    assert not part.mark or f"<!-- {part.mark} -->" in page


def test_every_table_between_marks_is_of_a_part() -> None:
    modules = {part.module for part in PARTS}
    writers = {
        f"benchmarks.studies.{path.stem}"
        for path in (ROOT / "benchmarks/studies").glob("*.py")
        if 'if __name__ == "__main__"' in (text := path.read_text(encoding="utf-8"))
        and "parse_options(" in text
    }
    assert writers <= modules


def test_a_part_that_fails_does_not_stop_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    bad = Part("bad", "docs/bad.md", "benchmarks.no_such_module", ())
    good = Part("good", "docs/good.md", "platform", ())
    assert make_pages([], [bad, good]) == 1
    assert "good: done" in capfd.readouterr().out
    assert make_pages(["good"], [bad, good]) == 0
