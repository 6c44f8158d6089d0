"""The command that makes all pages with verdicts: its parts exist, and failures are counted."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from benchmarks.studies.__main__ import PARTS, ROOT, Part, make_pages


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


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit):
        make_pages(["nothing"])
