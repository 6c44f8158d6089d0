"""List the JSON layouts that are read as ranked lists or judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_json, print_tables
from fusion_bench.config.options import Argument

if TYPE_CHECKING:
    from fusion_bench.io.layouts import Layout


class FormatsOptions(base.JsonOptions):
    """Options of ``formats``.

    Attributes:
        name: Only this layout, with a sample.
        samples: Print every layout with its sample in Markdown, as the documentation has them.
    """

    name: Annotated[str, Argument("NAME")] | None = None
    samples: bool = False


@base.single_command()
def command(options: FormatsOptions) -> None:
    """List the layouts of JSON that are read: where ids and scores are, and which score is best.

    Examples:
        fusion-bench formats
        fusion-bench formats qdrant-query
        fusion-bench formats --json | jq '.[].name'
    """
    import typer

    from fusion_bench.io.layouts import find_layout, load_layouts
    from fusion_bench.report.page import Column, make_table

    layouts = load_layouts() if options.name is None else [find_layout(options.name)]
    if options.json:
        print_json([describe_layout(layout) for layout in layouts])
    elif options.samples or options.name is not None:
        head = [PAGE_HEAD] if options.name is None else []
        typer.echo("\n\n".join([*head, *map(format_section, layouts)]))
    else:
        columns: list[Column[dict[str, Any]]] = [
            Column("name", lambda each: each["name"], is_text=True),
            Column("what it is", lambda each: each["title"], is_text=True),
            Column("document", lambda each: _join_paths(each["document"]), is_text=True),
            Column("score or grade", lambda each: _join_paths(each["score"]), is_text=True),
            Column("best", lambda each: each["best"], is_text=True),
        ]
        print_tables(make_table("layouts of JSON", columns, map(describe_layout, layouts)))


def describe_layout(layout: Layout) -> dict[str, Any]:
    """Return what a layout says, in the words of the table.

    Args:
        layout: A row of the table.
    """
    from fusion_bench.data.document_rows import VALUE_ROLES

    values = (*layout.score, *layout.distance, *layout.either, *layout.grade)
    usual = ["id", "_id", "docid", "…"] if layout.form == "hits" else []
    others = {*layout.score} - {*layout.distance}
    if layout.refuse:
        best = "refused"
    elif layout.either:
        best = "as the hits are ordered"
    elif layout.distance:
        best = "lowest distance" + (", highest score" if others else "")
    elif layout.ordered and not values:
        best = "first"
    else:
        best = "highest"
    return {
        "name": layout.name,
        "title": layout.title,
        "kinds": [layout.kind] if layout.kind else [*VALUE_ROLES],
        "lists": [*layout.lists],
        "query": [*layout.query],
        "document": [layout.index] if layout.index else [*layout.document] or usual,
        "score": [*dict.fromkeys(values)],
        "best": best,
        "refused": layout.refuse,
        "source": layout.source,
        "sample": layout.sample.strip(),
    }


def _join_paths(paths: list[str]) -> str:
    return ", ".join(path or "the answer" for path in paths)


#: The beginning of the page of the documentation.
PAGE_HEAD = """\
# Layouts of JSON

`fusion-bench formats --samples` writes this page from the table of layouts.
[File formats](formats.md) lists the rules that all layouts share. A path is keys joined by dots:
`[]` is each item of a list, in the order of the requests, `{}` is each value of an object, whose
key is the query, `*` is the only value of an object, `?` is the only list of objects in an object,
and `a|b` is the first of two keys that is there. Layouts are tried in this order, those of
judgments first if judgments are read, and the first that fits an answer reads it."""


def format_section(layout: Layout) -> str:
    """Return the section of a layout in Markdown, with its sample.

    Args:
        layout: A row of the table.
    """
    said = describe_layout(layout)
    labels = (key for key in ("lists", "query", "document", "score") if said[key])
    facts = [f"{key}: `{_join_paths(said[key])}`" for key in labels]
    link = f" ([source]({layout.source}))" if layout.source else ""
    end = f"Refused: {layout.refuse}" if layout.refuse else f"Best: {said['best']}"
    return (
        f"## {layout.name}\n\n{layout.title}{link}. Read as: {' or '.join(said['kinds'])}. "
        f"{'; '.join(facts)}. {end}.\n\n```json\n{said['sample']}\n```"
    ).replace(". lists", ". Lists")
