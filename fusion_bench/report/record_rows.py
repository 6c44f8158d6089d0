"""The records behind a page as flat rows, and as CSV with numbers in number cells."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from fusion_bench.evaluation.compared_reports import CollectionComparison, ComparisonPlan
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.util.formatting import escape_control_chars

#: Name of a table → its rows, column → value.
Rows: TypeAlias = dict[str, list[dict[str, Any]]]


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by dots; a list is its JSON, but for a list of texts: comma-separated.

    Args:
        record: As ``model_dump(mode="json")`` gives it.
        prefix: Stands before every key.
    """
    row: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            are_texts = all(isinstance(each, str) for each in value)
            row[f"{prefix}{key}"] = (
                ", ".join(value) if are_texts else json.dumps(value, ensure_ascii=False)
            )
        else:
            row[f"{prefix}{key}"] = value
    return row


def record_rows(record: BaseModel) -> Rows:
    """Every field that holds records, those of records inside it too, as ``plateau.points``."""
    parts = {name: getattr(record, name) for name in type(record).model_fields}
    nested = {
        f"{name}.{inner}": rows
        for name, part in parts.items()
        if isinstance(part, BaseModel)
        for inner, rows in _tuple_rows(part).items()
    }
    return {**_tuple_rows(record), **nested}


def _tuple_rows(record: BaseModel) -> Rows:
    """Rows of each field that holds records; empty fields are left out."""
    values = {name: getattr(record, name) for name in type(record).model_fields}
    return {
        name: [flatten(each.model_dump(mode="json")) for each in value]
        for name, value in values.items()
        if isinstance(value, tuple) and value and all(isinstance(x, BaseModel) for x in value)
    }


#: What says which row it is; these columns stand first.
FIRST_COLUMNS = ("collection", "measure", "baseline", "candidate")


def named_rows(name: str, records: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """Flat records, each with the collection that it belongs to."""
    rows = ({"collection": name, **flatten(each.model_dump(mode="json"))} for each in records)
    return [
        {key: row[key] for key in sorted(row, key=lambda k: k not in FIRST_COLUMNS)} for row in rows
    ]


def report_rows(report: Report) -> Rows:
    """``systems``, ``differences``, ``values``, ``lists``, ``lint``."""
    collections = report.collections
    return {
        **_collection_rows(
            [(each, {row.name: row for row in each.systems}) for each in collections],
            [(each.name, each.comparisons) for each in collections],
        ),
        "lists": [row for each in collections for row in named_rows(each.name, each.runs)],
        "lint": [flatten(each.model_dump(mode="json")) for each in report.lint],
    }


def _collection_rows(
    systems: Sequence[tuple[Collection, Mapping[str, SystemResult]]],
    comparisons: Iterable[tuple[str, Iterable[BaseModel]]],
) -> Rows:
    """``systems``, ``differences``, ``values`` of some collections."""
    return {
        "systems": [row for pair in systems for row in system_rows(*pair)],
        "differences": [row for pair in comparisons for row in named_rows(*pair)],
        "values": [row for pair in systems for row in value_rows(*pair)],
    }


def system_rows(
    collection: Collection, systems: Mapping[str, SystemResult]
) -> Iterator[dict[str, Any]]:
    """A row a system and measure: mean, interval, ties, unjudged documents.

    Args:
        collection: What they were evaluated on.
        systems: By the name that is shown.
    """
    for system, row in systems.items():
        for measure, result in row.measures.items():
            yield {
                "collection": collection.name,
                "system": system,
                "kind": row.kind,
                "measure": measure,
                **flatten(result.model_dump(mode="json", exclude={"values"})),
                "unjudged_share": row.unjudged_share,
                "returned_documents": row.returned_documents,
            }


def value_rows(
    collection: Collection, systems: Mapping[str, SystemResult]
) -> Iterator[dict[str, Any]]:
    """A row a query and system: the query's fields, and the value of each measure."""
    fields = {"type": collection.types, **collection.slices}
    for system, row in systems.items():
        for i, query in enumerate(collection.queries):
            yield {
                "collection": collection.name,
                "query": query,
                "system": system,
                **{name: values[i] for name, values in fields.items()},
                **{name: result.values[i] for name, result in row.measures.items()},
            }


def comparison_rows(
    plans: Sequence[ComparisonPlan], compared: Sequence[CollectionComparison]
) -> Rows:
    """``systems``, ``differences``, ``values`` of systems that were compared afterwards."""
    systems = [
        (plan.left, {name: plan.rows[name] for name in (plan.table.baseline, *plan.wanted)})
        for plan in plans
    ]
    return _collection_rows(systems, [(each.collection, each.comparisons) for each in compared])


#: A spreadsheet takes a text that begins so for a formula.
CSV_FORMULA = re.compile(r"[=@]|[+-](?![\d.])")


def render_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """The columns that have a value, then the rows: numbers in full, nothing for what is not known.

    An apostrophe stands before a text that a spreadsheet would compute.
    """
    text = io.StringIO()
    known = {key for row in rows for key, value in row.items() if value is not None}
    names = [key for key in dict.fromkeys(key for row in rows for key in row) if key in known]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_csv_cell, names))
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    escaped = escape_control_chars(value)
    return f"'{escaped}" if CSV_FORMULA.match(escaped.lstrip()) else escaped


#: The table with a row a query; ``--csv per-query`` writes it too.
PER_QUERY = "values"


def csv_files(stem: str, rows: Rows, kind: str | None) -> dict[str, str]:
    """File name → text of the tables that have rows.

    Args:
        stem: What the file names begin with, such as ``report``.
        rows: The tables.
        kind: ``tables``, or ``per-query`` for that of the queries too; None = no files.
    """
    left_out = set() if kind == "per-query" else {PER_QUERY}
    return {
        f"{stem}-{'per-query' if name == PER_QUERY else name.replace('_', '-')}.csv": render_csv(
            table
        )
        for name, table in rows.items()
        if kind is not None and table and name not in left_out
    }
