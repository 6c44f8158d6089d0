"""A report on a terminal, through a pipe, and where there is no Unicode."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from fusion_bench.evaluation.report_records import Report
from fusion_bench.report import tables
from fusion_bench.report.terminal import render
from tests.report import cases
from tests.report.cases import HOSTILE, PRIMARY, SECOND

NOTE = "Some columns need a wider terminal; the Markdown report has them all."


def printed(
    report: Report, *, width: int | None = None, encoding: str = "utf-8", colour: bool = False
) -> str:
    """What appears on a terminal of that width; without a width, in a pipe."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    console = Console(
        file=file,
        width=width or 80,
        force_terminal=width is not None,
        color_system="truecolor" if colour else None,
        legacy_windows=False,
        _environ={},
    )
    render(report, console)
    file.flush()
    return raw.getvalue().decode(encoding)


def without_codes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


LONG = "a system with quite a long name, " * 8 + "end"
REPORTS = {
    "usual": cases.report(cases.full()),
    "settings": cases.report(cases.full(split="test", query_type="local"), v2=False),
    "hostile": cases.report(cases.full(HOSTILE), name=HOSTILE),
    "long": cases.report(cases.full(LONG)),
    "unbroken": cases.report(cases.full("q" * 150)),
    "wide": cases.report(cases.full("中文" * 20), name="中" * 120),
    "many": cases.report(cases.many(45), cases.many(1)),
    "empty": cases.report(),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_pipe_gets_everything(name: str) -> None:
    report = REPORTS[name]
    text = printed(report)
    assert "\x1b" not in text
    assert NOTE not in text
    assert all(line == line.rstrip() for line in text.split("\n"))
    lines = text.splitlines()
    for collection in report.collections:
        for table in (
            tables.main(report, collection),
            tables.checks(report, collection),
            *(tables.other(report, collection, [m]) for m in collection.measures[1:]),
        ):
            assert table.title in lines
            assert all(note in lines for note in table.notes)
            for row in table.rows:  # each in a line of its own, with all its cells in order
                pattern = r"\s+".join(re.escape(cell) for cell in row.cells if cell)
                assert any(re.fullmatch(pattern, line) for line in lines), row


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("name", REPORTS)
def test_a_terminal_is_kept_to(name: str, width: int) -> None:
    report = REPORTS[name]
    text = without_codes(printed(report, width=width, colour=True))
    assert max(cell_len(line) for line in text.split("\n")) <= width
    for collection in report.collections:
        means = [row.cells[1] for row in tables.main(report, collection).rows]
        assert all(mean in text for mean in means)
    assert "…" not in text  # the sign of what was cut off


@pytest.mark.parametrize("width", [40, 100])
def test_long_names_wrap(width: int) -> None:
    report = REPORTS["unbroken"]
    pipe, text = printed(report), printed(report, width=width)
    # … once in every table, however many these are
    assert text.count("q") - text.count("quer") >= 150 * 4
    assert (pipe.count("q") - pipe.count("quer")) % 150 == pipe.count("unique")
    assert "q" * 150 in pipe
    wide = squeezed(printed(REPORTS["wide"], width=width))
    assert "中" * 120 in wide


def test_what_does_not_fit_is_said() -> None:
    report = REPORTS["usual"]
    narrow, wide = printed(report, width=100), printed(report, width=200)
    assert NOTE in narrow
    assert NOTE not in wide
    main = slice(wide.index("decides"), wide.index("Can the table"))
    assert "[0.7000, 0.9000]" in wide[main]
    main = slice(narrow.index("decides"), narrow.index("Can the table"))
    assert "[0.7000, 0.9000]" not in narrow[main]
    assert "[+0.3000, +0.5000]" in narrow[main]  # the interval that decides stays


def test_measures_stand_beside_each_other_where_they_fit() -> None:
    collection = cases.full()
    result = collection.systems[0].measures[SECOND]
    names = ["P@1", "P@3", "P@5", "P@7", "P@9"]
    systems = [
        row.model_copy(update={"measures": {**row.measures, **dict.fromkeys(names, result)}})
        for row in collection.systems
    ]
    more = collection.model_copy(update={"systems": systems, "measures": (PRIMARY, SECOND, *names)})
    report = cases.report(more)
    lines = printed(report, width=100).splitlines()
    titles = [line.rstrip() for line in lines if re.match(r"(RR|P)@\d+(, |\s*$)", line)]
    assert ", ".join(titles) == ", ".join([SECOND, *names])
    assert 1 < len(titles) < 6
    assert [line for line in printed(report).splitlines() if line in {SECOND, *names}] == [
        SECOND,
        *names,
    ]


def test_head() -> None:
    lines = printed(REPORTS["settings"]).splitlines()
    assert lines[:4] == [
        "experiment",
        "experiment.yaml, 2025-01-02T03:04:05+00:00; ties trec, seed 7, alpha 0.05, "
        "RAG_FUSION_V2_ENABLED off",
        "",
        "tiny 1, split test, type local: 3 queries",
    ]
    bare = REPORTS["usual"].model_copy(update={"settings": {}})
    assert printed(bare).splitlines()[1] == "experiment.yaml, 2025-01-02T03:04:05+00:00"


def test_sentences_are_bullets_and_wrap_under_themselves() -> None:
    report = REPORTS["settings"]
    piped = printed(report).splitlines()
    assert any(line.startswith("- better one is shown to be better") for line in piped)
    assert any(line.startswith("! RAG_FUSION_V2_ENABLED is off") for line in piped)
    lines = printed(report, width=60).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("! RAG_FUSION"))
    assert lines[first + 1].startswith("  ")


def test_colours_only_on_a_terminal() -> None:
    report = REPORTS["settings"]
    coloured = printed(report, width=100, colour=True)
    assert "\x1b[32m" in coloured  # better
    assert "\x1b[31m" in coloured  # worse
    assert "\x1b[33m! RAG_FUSION" in coloured
    assert without_codes(coloured) == printed(report, width=100)


@pytest.mark.parametrize("width", [None, 120])
def test_names_are_literal(width: int | None) -> None:
    text = printed(REPORTS["hostile"], width=width)
    assert text.startswith(f"{HOSTILE}\n")
    # the sentence, the three tables
    assert text.count(HOSTILE) >= 5
    assert ":smile:" in printed(cases.report(cases.full(":smile:")), width=width)


@pytest.mark.parametrize("width", [None, 100])
def test_nothing_steers_the_terminal(width: int | None) -> None:
    evil = "\x1b]0;owned\x07\r\n\x9b31m"
    found = cases.full(evil, baseline=f"b{evil}", split=evil, query_type=evil, version=evil)
    collection = found.model_copy(
        update={
            "measures": (PRIMARY, evil),
            "systems": tuple(
                row.model_copy(update={"measures": {**row.measures, evil: row.measures[SECOND]}})
                for row in found.systems
            ),
        }
    )
    report = cases.report(collection, name=evil, created=evil, settings={"ties": evil})
    text = printed(report, width=width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "\\x1b]0;owned\\x07\\r\\n\\x9b31m" in squeezed(text)


@pytest.mark.parametrize("width", [None, 100])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "koi8-r"])
def test_output_that_is_not_unicode(encoding: str, width: int | None) -> None:
    rows = (cases.system("bäse — 中", 0.5, 0.4, ties=cases.tied(1)), cases.floor(0.1, 0.2))
    report = cases.report(
        cases.collection(*rows, baseline="bäse — 中"), cases.full(), name="naïve 中"
    )
    text = printed(report, width=width, encoding=encoding)
    assert "0.1000..0.2000..0.3000" in text
    assert "p*" in text
    assert "* not adjusted" in text
    umlaut = "ï" if encoding in {"cp1252", "latin-1"} else "?"
    assert text.startswith(f"na{umlaut}ve ?\n")
    assert "----" in text


def test_unicode_is_kept() -> None:
    rows = (cases.system("bäse — 中", 0.5, ties=cases.tied(1)), cases.floor(0.1))
    text = printed(cases.report(cases.collection(*rows, baseline="bäse — 中")))
    assert "bäse — 中" in text
    assert "0.1000…0.2000…0.3000" in text
    assert "p†" in text
    assert "───" in text
