"""A report as GitHub Markdown: names are shown literally, whatever characters they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from fusion_bench.evaluation.report_records import Collection, Report
from fusion_bench.report import tables
from fusion_bench.report.by_type import by_type
from fusion_bench.report.findings import sentences
from fusion_bench.report.tables import Table
from fusion_bench.util.formatting import escape_control_chars, pluralize

__all__ = ["Picture", "escape", "render"]

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&#])")
#: At the start of a paragraph these would make it a list.
LEADING = re.compile(r"^(\d{1,9}(?=[.)](\s|$))|(?=[+-]))")
#: At the edges of a text spaces would be dropped, undo emphasis or make it code.
EDGES = re.compile(r"^ +| +$")


@dataclass(frozen=True)
class Picture:
    """A picture beside the report.

    Attributes:
        collection: Index of the collection it belongs to.
        title: For those who cannot see it.
        file: Its name, relative to the report.
    """

    collection: int
    title: str
    file: str


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in a line or in a table cell."""
    escaped = SPECIAL.sub(r"\\\1", escape_control_chars(text))
    return EDGES.sub(lambda spaces: "&#32;" * len(spaces[0]), escaped)


def _paragraph(text: str) -> str:
    """Text that Markdown shows as it is where a paragraph begins."""
    return LEADING.sub(r"\1\\", escape(text))


def render(report: Report, pictures: Sequence[Picture] = ()) -> str:
    """The whole report.

    Args:
        report: What to show.
        pictures: Pictures that stand beside it.
    """
    lines = [*_head(report)]
    for i, collection in enumerate(report.collections):
        own = [picture for picture in pictures if picture.collection == i]
        lines += _collection(report, collection, own)
    return "\n".join(lines) + "\n"


def _head(report: Report) -> Iterator[str]:
    settings, origin = report.settings, report.provenance
    yield from (f"# {_paragraph(report.name)}", "")
    if settings.get("description"):
        yield from (_paragraph(" ".join(str(settings["description"]).split())), "")
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    facts = {
        "made": origin.created,
        "from": f"{origin.source} (SHA-256 {origin.source_sha256})",
        "with": versions,
        "RAG_FUSION_V2_ENABLED": "on" if origin.v2_enabled else "off: v2 ran as v1",
        **{
            key: "by default" if value is None else str(value)
            for key, value in settings.items()
            if key in {"ties", "alpha", "interval", "resamples", "seed"}
        },
    }
    yield from _facts(facts)


def _facts(facts: dict[str, str]) -> Iterator[str]:
    yield from ("| | |", "|:--|:--|")
    yield from (f"| {escape(key)} | {escape(value)} |" for key, value in facts.items())
    yield ""


def _collection(
    report: Report, collection: Collection, pictures: Sequence[Picture]
) -> Iterator[str]:
    yield from (f"## {_paragraph(f'{collection.name} {collection.version}')}", "")
    found = sentences(report, collection)
    yield from (f"- {_paragraph(s.text)}" for s in found if s.kind == "finding")
    warnings = [f"> - {_paragraph(s.text)}" for s in found if s.kind == "warning"]
    yield ""
    if warnings:
        yield from ("> [!WARNING]", *warnings, "")
    yield from _facts(_collection_facts(collection))
    yield from _table(tables.main(report, collection))
    for picture in pictures:
        yield from (f"![{escape(picture.title)}]({picture.file})", "")
    typed = by_type(report, collection)
    if typed is not None:
        yield from _table(typed)
    if (priced := tables.prices(collection)) is not None:
        yield from _table(priced)
    yield from _table(tables.checks(report, collection))
    for name in collection.measures[1:]:
        yield from _table(tables.other(report, collection, [name]))
    yield from _details(report, collection)


def _collection_facts(collection: Collection) -> dict[str, str]:
    groups = len(set(collection.groups))
    return {
        "queries": f"{len(collection.queries):,} in {pluralize(groups, 'group')}, "
        f"{collection.no_relevant:,} of them without a relevant document",
        "split": collection.split or "none: all judged queries",
        "query type": collection.query_type or "all",
        "best single source chosen on": collection.tuning_split or "the evaluated queries",
        "judgments": f"{collection.judgments}, relevant from grade {collection.binary_relevance}",
        "fingerprint of the parts read": (
            f"{collection.fingerprint} ({', '.join(collection.digests)})"
        ),
    }


def _table(table: Table) -> Iterator[str]:
    """A table with its title and notes; the bounds stand apart from what was asked for."""
    yield from (f"### {_paragraph(table.title)}", "")
    yield _line([escape(column.header) for column in table.columns])
    yield _line([":--" if column.left else "--:" for column in table.columns])
    apart = False
    for row in table.rows:
        if row.tone == "bound" and not apart:
            apart = True
            yield _line(["*for scale*", *("" for _ in table.columns[1:])])
        mark = {"baseline": "**", "bound": "*"}.get(row.tone, "")
        yield _line([f"{mark}{escape(cell)}{mark}" if cell else "" for cell in row.cells])
    yield ""
    for note in table.notes:
        yield from (_paragraph(note), "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _details(report: Report, collection: Collection) -> Iterator[str]:
    """What it takes to repeat the run: every option resolved, every input named."""
    yield from ("<details>", "<summary>Configuration and inputs</summary>", "")
    yield from _table(tables.inputs(collection))
    yield from ("Resolved systems:", "")
    systems = {row.name: row.config for row in collection.systems if row.config is not None}
    yield from _yaml({"systems": systems})
    yield from ("Settings:", "", *_yaml(report.settings))
    yield from ("SHA-256 of each part:", "", *_yaml(collection.digests))
    yield from ("</details>", "")


def _yaml(data: object) -> Iterator[str]:
    """A YAML block whose fence is longer than any run of backticks in it."""
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100).rstrip()
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}yaml", text, fence, "")
