"""A page on a terminal, through a pipe, and where there is no Unicode."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.page import Page
from fusion_bench.report.terminal import DROPPED_COLUMNS, print_page
from fusion_bench.util.formatting import PIPE_WIDTH
from tests.report import cases
from tests.report.cases import HOSTILE, PRIMARY, SECOND, example_page


def printed(
    page: Page, *, width: int | None = None, encoding: str = "utf-8", is_colored: bool = False
) -> str:
    """What appears on a terminal of that width; without a width, in a pipe."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    console = Console(
        file=file,
        width=width or PIPE_WIDTH,
        force_terminal=width is not None,
        color_system="truecolor" if is_colored else None,
        legacy_windows=False,
        _environ={},
    )
    print_page(page, console)
    file.flush()
    return raw.getvalue().decode(encoding)


def without_codes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def without_blanks(text: str) -> str:
    return re.sub(r"\s", "", text)


LONG = "a system with quite a long name, " * 8 + "end"
PAGES = {
    "example": example_page(),
    "usual": build_page(cases.report(cases.full())),
    "hostile": build_page(cases.report(cases.full(HOSTILE), name=HOSTILE)),
    "long": build_page(cases.report(cases.full(LONG))),
    "unbroken": build_page(cases.report(cases.full("q" * 150))),
    "wide": build_page(cases.report(cases.full("中文" * 20), name="中" * 120)),
    "many": build_page(cases.report(cases.many(45), cases.many(1))),
    "empty": build_page(cases.report()),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_pipe_gets_every_table_and_finding(name: str) -> None:
    text = printed(PAGES[name])
    assert "\x1b" not in text
    assert DROPPED_COLUMNS not in text
    lines = text.split("\n")
    assert all(line == line.rstrip() and cell_len(line) <= PIPE_WIDTH for line in lines)
    text = without_blanks(text)
    for section in PAGES[name].sections:
        if section.is_folded:
            continue
        assert all(without_blanks(finding.text) in text for finding in section.findings)
        for table in section.tables:
            assert without_blanks(table.title) in text
            assert all(without_blanks(note) in text for note in table.notes)
            numbers = [cell for row in table.rows for cell in row.cells[1:]]
            assert all(without_blanks(cell) in text for cell in numbers), table.title


@pytest.mark.parametrize("name", ["example", "usual"])
def test_a_pipe_gets_a_row_of_short_names_in_one_line(name: str) -> None:
    lines = printed(PAGES[name]).splitlines()
    shown = [section for section in PAGES[name].sections if not section.is_folded]
    for table in (table for section in shown for table in section.tables):
        for row in table.rows:  # all its cells in order
            pattern = r"\s+".join(re.escape(cell) for cell in row.cells if cell)
            assert any(re.fullmatch(pattern, line) for line in lines), row


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("name", PAGES)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    text = without_codes(printed(PAGES[name], width=width, is_colored=True))
    assert max(cell_len(line) for line in text.split("\n")) <= width
    for section in PAGES[name].sections:
        means = [row.cells[1] for table in section.tables[:1] for row in table.rows]
        assert section.is_folded or all(mean in text for mean in means)
    assert "…" not in text  # the sign of what was cut off


@pytest.mark.parametrize("width", [40, 100])
def test_long_names_wrap(width: int) -> None:
    assert "q" * 150 in without_blanks(printed(PAGES["unbroken"]))
    assert "q" * 150 in without_blanks(printed(PAGES["unbroken"], width=width))
    assert "中" * 120 in without_blanks(printed(PAGES["wide"], width=width))


def test_optional_columns_are_dropped_where_they_do_not_fit() -> None:
    narrow, wide = printed(PAGES["usual"], width=100), printed(PAGES["usual"], width=200)
    assert DROPPED_COLUMNS in narrow
    assert DROPPED_COLUMNS not in wide
    assert "0.8000  [0.7000, 0.9000]" in wide[: wide.index("Validity")]
    primary = narrow[: narrow.index("Validity")]
    assert "[0.7000, 0.9000]" not in primary
    assert "[+0.3000, +0.5000]" in primary, "the interval of the difference is required"


def test_what_is_left_out_wrapped_and_colored_on_a_terminal() -> None:
    text = printed(example_page("x"))
    assert text.startswith("x\n\nSection x\nSummary x\nA text on x\n- A finding about x.\n")
    assert "! A failure of x.\n    Its detail, x.\n! A warning about x.\n" in text
    assert text.endswith("\npassed: x\n"), "the headline is the last line"
    assert all(word not in text for word in ("Folded", "fact x", "Figure", "a.png", "key:"))
    lines = printed(example_page("name " * 30), width=60).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("- A finding"))
    assert lines[first + 1].startswith("  ")
    colored = printed(example_page(), width=100, is_colored=True)
    assert "\x1b[32m" in colored  # better
    assert "\x1b[31m! A failure" in colored
    assert "\x1b[33m! A warning" in colored
    assert without_codes(colored) == printed(example_page(), width=100)


@pytest.mark.parametrize("width", [None, 120])
def test_names_are_literal(width: int | None) -> None:
    for name in (HOSTILE, ":smile:"):
        assert printed(example_page(name), width=width).count(name) >= 10


@pytest.mark.parametrize("width", [None, 100])
def test_no_name_controls_the_terminal(width: int | None) -> None:
    evil = "\x1b]0;owned\x07\r\n\x9b31m"
    full = cases.full(evil, baseline=f"b{evil}", split=evil, query_type=evil, version=evil)
    systems = tuple(
        row.model_copy(update={"measures": {**row.measures, evil: row.measures[SECOND]}})
        for row in full.systems
    )
    collection = full.model_copy(update={"measures": (PRIMARY, evil), "systems": systems})
    report = cases.report(collection, name=evil, created=evil, settings={"ties": evil})
    for page in (build_page(report), example_page(evil)):
        text = printed(page, width=width)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
        assert "\\x1b]0;owned\\x07\\r\\n\\x9b31m" in without_blanks(text)


@pytest.mark.parametrize("width", [None, 100])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "koi8-r"])
def test_output_that_is_not_unicode(encoding: str, width: int | None) -> None:
    rows = (cases.system("bäse — 中", 0.5, 0.4, ties=cases.tied(1)), cases.floor(0.1, 0.2))
    collection = cases.collection(*rows, baseline="bäse — 中")
    report = cases.report(collection, cases.full(), name="naïve 中")
    text = printed(build_page(report), width=width, encoding=encoding)
    assert "0.1000..0.2000..0.3000" in text
    umlaut = "ï" if encoding in {"cp1252", "latin-1"} else "?"
    assert text.startswith(f"na{umlaut}ve ?\n")
    assert "----" in text
    kept = printed(build_page(report))
    assert all(word in kept for word in ("bäse — 中", "0.1000…0.2000…0.3000", "───"))
