"""The brief form of a page, which a terminal shows by default: an answer and its reasons.

The full page has every table, note and figure; the brief one leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fusion_bench.report.data_warnings import sort_by_severity
from fusion_bench.report.page import ALERTS, LINT, Finding, Page, Section, Table
from fusion_bench.util.formatting import list_names, pluralize

#: Of what speaks against an answer so much is shown; the rest is counted.
MAX_WARNINGS = 3
#: Columns of a table, and its rows, those that count the rest included.
MAX_COLUMNS, MAX_ROWS = 7, 11
#: Next steps.
MAX_STEPS = 3
#: Of several answers so many are listed.
MAX_DETAILS = 6
#: A sentence ends before a blank and a capital letter, or a quotation.
SENTENCE_END = re.compile(r"(?<=[a-z0-9%)][.]) +(?=[A-Z“'])")


def shorten_page(page: Page) -> Page:
    """The page with at most three warnings and one table a collection, without notes.

    A table has at most seven columns and eleven rows: the required columns; the baseline, the first
    group, what failed, then the first rows. A page whose headline passed has no table.
    """
    shown = [section for section in page.sections if not section.is_folded]
    mains = [section for section in shown if section.tables] or shown[:1]
    collections = [section for section in mains if section.key.startswith("collection")]
    mains = collections or mains[:1]
    others = [section for section in shown if section not in mains]
    has_passed = page.headline is not None and page.headline.tone == "passed"
    sections = [
        _shorten_section(section, others if len(mains) == 1 else (), has_table=not has_passed)
        for section in mains
    ]
    if len(mains) > 1:
        sections = [
            replace(each, title=main.title) for each, main in zip(sections, mains, strict=True)
        ]
        sections.append(Section(findings=tuple(_limit_warnings(_list_warnings(others)))))
    return replace(
        page,
        headline=None if page.headline is None else _shorten_headline(page.headline),
        sections=tuple(sections),
        provenance=None,
        next_steps=page.next_steps[:MAX_STEPS],
        advice=page.advice[:MAX_DETAILS],
    )


def _shorten_headline(headline: Finding) -> Finding:
    more = len(headline.details) - MAX_DETAILS
    if more <= 1:
        return headline
    return replace(
        headline, details=(*headline.details[:MAX_DETAILS], f"{more} more (-v shows them)")
    )


def _shorten_section(section: Section, others: Iterable[Section], *, has_table: bool) -> Section:
    """Warnings of a section and of others, then its first table."""
    groups = [finding for finding in section.findings if finding.key == "first group"]
    warnings = _limit_warnings(_list_warnings((section, *others)))
    return Section(
        findings=(*(_first_sentence(each) for each in groups), *warnings),
        parts=tuple(shorten_table(table) for table in section.tables[: int(has_table)]),
    )


def _list_warnings(sections: Iterable[Section]) -> Iterator[Finding]:
    """What speaks against the answer, the most serious first: who judged, data, results, lint."""
    lint: list[Finding] = []
    for section in sorted(sections, key=lambda each: each.key != "judge"):
        alerts = sort_by_severity(each for each in section.findings if each.tone in ALERTS)
        lint += (finding for finding in alerts if finding.key.startswith(LINT))
        yield from (finding for finding in alerts if not finding.key.startswith(LINT))
    if lint:
        rules = list_names([finding.key.removeprefix(LINT) for finding in lint])
        yield Finding(f"lint: {rules}", "warning")


def _limit_warnings(warnings: Iterable[Finding]) -> Iterator[Finding]:
    """The first ones, a sentence each, and how many more there are."""
    listed = list(warnings)
    shown = listed if len(listed) == MAX_WARNINGS + 1 else listed[:MAX_WARNINGS]
    yield from map(_first_sentence, shown)
    if more := len(listed) - len(shown):
        yield Finding(f"{pluralize(more, 'more warning')} (-v shows them)", "warning")


def _first_sentence(finding: Finding) -> Finding:
    sentence = SENTENCE_END.split(finding.text, maxsplit=1)[0]
    return replace(finding, text=sentence.removesuffix("."), details=())


def shorten_table(table: Table) -> Table:
    """A table's required columns and first rows, without reference rows and notes."""
    rows = tuple(row for row in table.rows if row.tone != "reference")
    required = replace(table, rows=rows, notes=()).without_optional_columns()
    narrow = required.select_columns(lambda i: i < MAX_COLUMNS)
    tables = (narrow.shorten(limit) for limit in range(MAX_ROWS - 3, 1, -1))
    return next(each for each in tables if len(each.rows) <= MAX_ROWS)  # each gap is a row, too
