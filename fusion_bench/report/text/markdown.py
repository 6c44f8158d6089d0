"""A page as GitHub Markdown: names are shown literally, whatever characters they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import yaml

from fusion_bench.report.page import (
    Column,
    Figure,
    Finding,
    Page,
    Part,
    Row,
    Section,
    Table,
    Tone,
    YamlBlock,
)
from fusion_bench.util.formatting import escape_control_chars

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
FACT_COLUMNS = (Column("", is_text=True), Column("", is_text=True))
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
    yield from _finding_lines(section.findings)
    if section.facts:
        rows = tuple(Row((name, section.facts[name])) for name in section.facts)
        yield from (*format_table(Table("", FACT_COLUMNS, rows)), "")
    for part in section.parts:
        yield from _part_lines(part)
    if section.is_folded:
        yield from ("</details>", "")


def _finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A list, then an alert with the warnings."""
    warnings = [finding for finding in findings if finding.tone == "warning"]
    others = [finding for finding in findings if finding.tone != "warning"]
    for finding in others:
        yield f"- {MARKS.get(finding.tone, '')}{_escape_paragraph(finding.text)}"
        yield from (f"  - {_escape_paragraph(line)}" for line in finding.details)
    if others:
        yield ""
    if warnings:
        yield from ("> [!WARNING]", *(f"> - {_escape_paragraph(w.text)}" for w in warnings), "")


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
            yield from (f"{_escape_paragraph(part.title)}:", "", *_yaml_lines(part.data))


def format_table(table: Table) -> Iterator[str]:
    """The lines of a table, without its title and notes; reference rows stand apart."""
    yield _line([escape_markdown(column.header) for column in table.columns])
    yield _line([":--" if column.is_text else "--:" for column in table.columns])
    is_apart = False
    for row in table.rows:
        if row.tone == "reference" and not is_apart:
            is_apart = True
            yield _line(["*Reference points*", *("" for _ in table.columns[1:])])
        emphasis = EMPHASIS.get(row.tone, "")
        cells = [f"{emphasis}{escape_markdown(c)}{emphasis}" if c else "" for c in row.cells]
        yield _line([f"{MARKS.get(row.tone, '')}{cells[0]}", *cells[1:]])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


class _Dumper(yaml.SafeDumper):
    """Quotes text with invisible characters, so that they can be escaped."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if INVISIBLE.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _yaml_lines(data: object) -> Iterator[str]:
    """A YAML block whose fence is longer than any run of backticks in it."""
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100).rstrip()
    text = INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}yaml", text, fence, "")
