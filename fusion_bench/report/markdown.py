"""A page as Markdown: the whole of it, or a summary of at most 40 lines.

The verdict comes first, then the table that it rests on, and the provenance last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

import yaml

from fusion_bench.report.page import (
    WHAT_TO_DO,
    Column,
    Figure,
    Finding,
    Page,
    Part,
    Section,
    Table,
    Tone,
    YamlBlock,
    make_table,
)
from fusion_bench.util.formatting import escape_control_chars, pluralize

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&#])")
#: At the start of a paragraph these would make it a list.
LEADING = re.compile(r"^(\d{1,9}(?=[.)](\s|$))|(?=[+-]))")
#: GitHub makes a link or a mention of what stands around these places: addresses of the web and of
#: mail, ``@team``, ``#12`` and ``GH-12``. ``nDCG@10`` is none.
LIVE = re.compile(
    r"(?<=[a-z]:)(?=//)|(?<=\bwww)(?=\.)|(?<![a-z0-9]@)(?<=@)(?=[a-z0-9])"
    r"|(?<=[\w.+-]@)(?=[\w-]+\.[a-z0-9])|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)",
    re.IGNORECASE,
)
#: Stands for a break until all else is escaped; escaped text holds no control character.
BREAK = "\0"
#: At the edges of a text spaces would be dropped, undo emphasis or make it code.
EDGES = re.compile(r"^ +| +$")
#: Characters of width 0, and those that turn the direction of text; YAML writes them as they are.
INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
#: Of longer tables the middle is folded.
MAX_ROWS = 15
#: Before the first cell of a row, and before a finding.
MARKS: dict[Tone, str] = {"passed": "✅ ", "failed": "❌ ", "inconclusive": "❔ "}
#: Name and value.
FACT_COLUMNS: tuple[Column[tuple[str, str]], ...] = tuple(
    Column("", itemgetter(i), is_text=True) for i in range(2)
)
EMPHASIS: dict[Tone, str] = {"baseline": "**", "reference": "*"}


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a line or in a table cell.

    GitHub makes no link, mention or reference of it: a space of width 0 breaks each.
    """
    escaped = SPECIAL.sub(r"\\\1", LIVE.sub(BREAK, escape_control_chars(text)))
    escaped = escaped.replace(BREAK, "&#8203;")
    return EDGES.sub(lambda spaces: "&#32;" * len(spaces[0]), escaped)


def _escape_paragraph(text: str) -> str:
    """Text that Markdown shows as it is where a paragraph begins."""
    return LEADING.sub(r"\1\\", escape_markdown(text))


def render_page(page: Page) -> str:
    """The whole page; figures are linked by their file names."""
    mark = "" if page.headline is None else MARKS.get(page.headline.tone, "")
    lines = [f"# {mark}{_escape_paragraph(page.title)}", ""]
    if page.headline is not None:
        lines += [f"**{escape_markdown(page.headline.text)}**", ""]
        details = [f"- {_escape_paragraph(line)}" for line in page.headline.details]
        lines += [*details, ""] if details else []
    for text in page.advice:
        lines += [f"**{WHAT_TO_DO}:** {escape_markdown(text)}", ""]
    for section in page.sections:
        lines += _section_lines(section)
    if page.provenance is not None:
        lines += _section_lines(page.provenance)
    return "\n".join(lines).rstrip() + "\n"


def _section_lines(section: Section) -> Iterator[str]:
    if section.is_folded:
        yield from ("<details>", f"<summary>{escape_markdown(section.title)}</summary>", "")
    elif section.title:
        yield from (f"## {_escape_paragraph(section.title)}", "")
    if section.text:
        yield from (_escape_paragraph(section.text), "")
    warnings = [finding for finding in section.findings if finding.tone == "warning"]
    others = [finding for finding in section.findings if finding.tone != "warning"]
    for finding in others:
        yield f"- {MARKS.get(finding.tone, '')}{_escape_paragraph(finding.text)}"
        yield from (f"  - {_escape_paragraph(line)}" for line in finding.details)
    if others:
        yield ""
    if warnings:
        yield from ("> [!WARNING]", *(f"> - {_escape_paragraph(w.text)}" for w in warnings), "")
    if section.facts:
        yield from (*format_table(make_table("", FACT_COLUMNS, section.facts.items())), "")
    for part in section.parts:
        yield from _part_lines(part)
    if section.is_folded:
        yield from ("</details>", "")


def _part_lines(part: Part) -> Iterator[str]:
    match part:
        case Table():
            yield from (f"### {_escape_paragraph(part.title)}", "")
            yield from format_table(part.shorten(MAX_ROWS))
            yield ""
            if len(part.shorten(MAX_ROWS).rows) < len(part.rows):
                yield from ("<details>", f"<summary>All {len(part.rows):,} rows</summary>", "")
                yield from (*format_table(part), "", "</details>", "")
            for note in part.notes:
                yield from (_escape_paragraph(note), "")
        case Figure():
            if part.caption:
                yield from (f"### {_escape_paragraph(part.title)}", "")
                yield from (_escape_paragraph(part.caption), "")
            yield from (f"![{escape_markdown(part.title)}]({part.file})", "")
        case YamlBlock():
            text = yaml.dump(
                part.data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
            ).rstrip()
            text = INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
            # The fence is longer than any run of backticks in the text.
            longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            yield from (f"{_escape_paragraph(part.title)}:", "", f"{fence}yaml", text, fence, "")


def format_table(table: Table) -> Iterator[str]:
    """The lines of a table, without its title and notes; reference rows stand apart."""
    table = table.mark_best()
    yield _table_line([escape_markdown(column.header) for column in table.columns])
    yield _table_line([":--" if column.is_text else "--:" for column in table.columns])
    is_apart = False
    for row in table.rows:
        if row.tone == "reference" and not is_apart:
            is_apart = True
            yield _table_line(["*Reference points*", *("" for _ in table.columns[1:])])
        emphasis = EMPHASIS.get(row.tone, "")
        cells = [f"{emphasis}{escape_markdown(c)}{emphasis}" if c else "" for c in row.cells]
        yield _table_line([f"{MARKS.get(row.tone, '')}{cells[0]}", *cells[1:]])


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


class _Dumper(yaml.CSafeDumper):
    """Quotes text with invisible characters, so that they can be escaped."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if INVISIBLE.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


MAX_SUMMARY_LINES = 40
#: Sections, rows of a table and findings; the first that fit into the lines are taken.
SUMMARY_LIMITS = (
    *((99, 20, 6), (99, 12, 5), (99, 8, 4)),
    *((6, 6, 3), (4, 5, 2), (3, 4, 2), (2, 3, 1), (1, 3, 1), (0, 0, 0)),
)
#: Of several collections' decisions so many are listed.
MAX_DETAILS = 12
#: Of several collections' advice so much; the full report has all.
MAX_ADVICE = 4


def render_summary(page: Page) -> str:
    """The headline, the first findings and the first table of each section, and the provenance.

    Optional columns, notes, figures and folded sections are left out; of long tables the first
    rows, the baseline, the reference rows and the last row stay.

    Args:
        page: Of any command.

    Returns:
        Markdown of at most 40 lines.
    """
    headline = page.headline
    if headline is not None and len(headline.details) > MAX_DETAILS:
        more = f"{len(headline.details) - MAX_DETAILS} more in the full report."
        headline = replace(headline, details=(*headline.details[:MAX_DETAILS], more))
    advice = page.advice[:MAX_ADVICE]
    origin = "" if page.provenance is None else page.provenance.summary
    page = replace(page, headline=headline, advice=advice, provenance=None)
    shown = [section for section in page.sections if not section.is_folded]
    for sections, rows, findings in SUMMARY_LIMITS:
        short = [_shorten_section(section, rows, findings) for section in shown[:sections]]
        if len(shown) > sections:
            more = pluralize(len(shown) - sections, "more section")
            short.append(Section(text=f"{more} in the full report."))
        text = render_page(replace(page, sections=tuple(short)))
        text += f"\n*{escape_markdown(origin)}*\n" if origin else ""
        if len(text.splitlines()) <= MAX_SUMMARY_LINES:
            break
    return text


def _shorten_section(section: Section, rows: int, findings: int) -> Section:
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
        findings=(
            *_limit_findings(others, findings),
            *_limit_findings(warnings, max(1, findings // 2)),
        ),
        parts=tuple(tables),
    )


def _limit_findings(findings: list[Finding], limit: int) -> tuple[Finding, ...]:
    """The first findings, and how many more there are."""
    more = len(findings) - limit
    if more <= 1:
        return tuple(findings)
    text = f"{more} more in the full report."
    tone: Tone = "warning" if findings[0].tone == "warning" else "plain"
    return (*findings[:limit], Finding(text, tone))
