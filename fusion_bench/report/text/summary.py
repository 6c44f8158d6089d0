"""A page in at most 40 lines of Markdown, for a chat, a ticket or a pull request.

The verdict comes first, then the table that it rests on, and the provenance last.
"""

from __future__ import annotations

from dataclasses import replace

from fusion_bench.report.page import Finding, Page, Section, Tone
from fusion_bench.report.text.markdown import escape_markdown, render_page
from fusion_bench.util.formatting import pluralize

MAX_LINES = 40
#: Sections, rows of a table and findings; the first that fit into the lines are taken.
LIMITS = (
    *((99, 20, 6), (99, 12, 5), (99, 8, 4)),
    *((6, 6, 3), (4, 5, 2), (3, 4, 2), (2, 3, 1), (1, 3, 1), (0, 0, 0)),
)
#: Of several collections' decisions so many are listed.
MAX_DETAILS = 12


def render_summary(page: Page) -> str:
    """The headline, the first findings and the first table of each section, and the provenance.

    Optional columns, notes, figures and folded sections are left out; of long tables the first
    rows, the baseline, the reference rows and the last row stay.

    Args:
        page: Of any command.

    Returns:
        Markdown of at most 40 lines.
    """
    texts = (_render(page, *limits) for limits in LIMITS)
    return next(text for text in texts if len(text.splitlines()) <= MAX_LINES)


def _render(page: Page, sections: int, rows: int, findings: int) -> str:
    shown = [section for section in page.sections if not section.is_folded]
    short = [_shorten(section, rows, findings) for section in shown[:sections]]
    if len(shown) > sections:
        more = pluralize(len(shown) - sections, "more section")
        short.append(Section(text=f"{more} in the full report."))
    headline = page.headline
    if headline is not None and len(headline.details) > MAX_DETAILS:
        more = f"{len(headline.details) - MAX_DETAILS} more in the full report."
        headline = replace(headline, details=(*headline.details[:MAX_DETAILS], more))
    short_page = replace(page, sections=tuple(short), headline=headline, provenance=None)
    text = render_page(short_page)
    origin = "" if page.provenance is None else page.provenance.summary
    return f"{text}\n*{escape_markdown(origin)}*\n" if origin else text


def _shorten(section: Section, rows: int, findings: int) -> Section:
    short = [replace(finding, details=()) for finding in section.findings]
    others = [finding for finding in short if finding.tone != "warning"]
    warnings = [finding for finding in short if finding.tone == "warning"]
    tables = [
        replace(table.without_optional_columns().shorten(rows), notes=())
        for table in section.tables[:1]
    ]
    return Section(
        section.title,
        text=section.text,
        findings=(*_limit(others, findings), *_limit(warnings, max(1, findings // 2))),
        parts=tuple(tables),
    )


def _limit(findings: list[Finding], limit: int) -> tuple[Finding, ...]:
    """The first findings, and how many more there are."""
    more = len(findings) - limit
    if more <= 1:
        return tuple(findings)
    text = f"{more} more in the full report."
    tone: Tone = "warning" if findings[0].tone == "warning" else "plain"
    return (*findings[:limit], Finding(text, tone))
