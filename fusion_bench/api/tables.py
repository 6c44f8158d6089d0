"""Everything that a page shows as data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fusion_bench.api.results import find_record
from fusion_bench.errors import DataError
from fusion_bench.evaluation.details.collector import CollectionDetails, ReportDetails
from fusion_bench.evaluation.report_changes import ReportChange
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.gate.result import GateVerdict
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.util.formatting import make_frame

if TYPE_CHECKING:
    import pandas as pd


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


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A data frame; a key that a row lacks is missing there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return make_frame({name: [row.get(name) for row in rows] for name in names})


def tuple_tables(record: BaseModel) -> dict[str, pd.DataFrame]:
    """For each field that holds records, a data frame of them; empty fields are left out."""
    values = {name: getattr(record, name) for name in type(record).model_fields}
    return {
        name: frame_of([flatten(each.model_dump(mode="json")) for each in value])
        for name, value in values.items()
        if isinstance(value, tuple) and value and all(isinstance(x, BaseModel) for x in value)
    }


def named_rows(name: str, records: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """Flat records, each with the collection that it belongs to."""
    return [{"collection": name, **flatten(each.model_dump(mode="json"))} for each in records]


def report_tables(report: Report) -> dict[str, pd.DataFrame]:
    """``systems``, ``differences``, ``values``, ``lists``, ``lint``, and those of the details."""
    collections = report.collections
    rows = {
        "systems": [row for each in collections for row in _system_rows(each)],
        "differences": [
            row for each in collections for row in named_rows(each.name, each.comparisons)
        ],
        "values": [row for each in collections for row in _value_rows(each)],
        "lists": [row for each in collections for row in named_rows(each.name, each.runs)],
        "lint": [flatten(each.model_dump(mode="json")) for each in report.lint],
    }
    details = details_tables(report.details()) if report.has_details else {}
    return {**{name: frame_of(table) for name, table in rows.items()}, **details}


def _system_rows(collection: Collection) -> Iterator[dict[str, Any]]:
    """A row a system and measure: mean, interval, ties, unjudged documents."""
    for row in collection.systems:
        for measure, result in row.measures.items():
            yield {
                "collection": collection.name,
                "system": row.name,
                "kind": row.kind,
                "measure": measure,
                **flatten(result.model_dump(mode="json", exclude={"values"})),
                "unjudged_share": row.unjudged_share,
                "returned_documents": row.returned_documents,
            }


def _value_rows(collection: Collection) -> Iterator[dict[str, Any]]:
    """A row a query and system: the query's fields, and the value of each measure."""
    fields = {"type": collection.types, **collection.slices}
    for row in collection.systems:
        for i, query in enumerate(collection.queries):
            yield {
                "collection": collection.name,
                "query": query,
                "system": row.name,
                **{name: values[i] for name, values in fields.items()},
                **{name: result.values[i] for name, result in row.measures.items()},
            }


def details_tables(details: ReportDetails) -> dict[str, pd.DataFrame]:
    """``relevant``, ``top``, ``overlap``, ``leave_one_out``, ``depth_curve``, ``unjudged``."""
    tables: dict[str, list[pd.DataFrame]] = {}
    for each in details.collections:
        for name, frame in _detail_frames(each):
            frame.insert(0, "collection", each.name)
            tables.setdefault(name, []).append(frame)
    return {name: _join(frames) for name, frames in tables.items()}


def _detail_frames(details: CollectionDetails) -> Iterator[tuple[str, pd.DataFrame]]:
    for name in ("relevant", "overlap", "leave_one_out", "depth_curve"):
        yield name, getattr(details, name).to_pandas()
    for top in details.top:
        frame = top.to_pandas()
        if "system" not in frame:
            frame.insert(0, "system", top.system)
        yield "top", frame
    rows = [
        {"system": system, "query": query, "unjudged": int(count)}
        for system, counts in details.unjudged.items()
        for query, count in zip(details.queries, counts, strict=True)
    ]
    yield "unjudged", frame_of(rows)


def _join(frames: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def change_tables(change: ReportChange) -> dict[str, pd.DataFrame]:
    """``settings``, ``systems``, ``queries``."""
    changes = [("setting", each) for each in change.settings]
    changes += [("version", each) for each in change.versions]
    settings = [
        {"of": kind, "path": each.path, "then": each.then, "now": each.now}
        for kind, each in changes
    ]
    settings += [
        {"collection": c.name, "of": row.name, "path": s.path, "then": s.then, "now": s.now}
        for c in change.collections
        for row in c.systems
        for s in row.config
    ]
    queries = [
        {"collection": c.name, "query": q.query, "system": q.system, "then": q.then, "now": q.now}
        for c in change.collections
        for q in c.queries.rows
    ]
    return {
        "settings": frame_of(settings),
        "systems": change.to_pandas(),
        "queries": frame_of(queries),
    }


def tables(result: object) -> dict[str, pd.DataFrame]:
    """Everything that a page shows, as data frames by name.

    Args:
        result: What ``compare``, ``run_experiment``, ``tune``, ``gate`` or ``compare_reports``
            returned, a ``Report``, what ``.details()`` gave, or the path of a ``report.json``.

    Returns:
        The frames; docs/python.md lists them. One without rows has no columns, or is left out.

    Raises:
        DataError: It is nothing that has tables, or the file breaks a rule.
    """
    record = result
    if not isinstance(result, ReportDetails | CollectionDetails | ReportChange):
        record = find_record(result)
    if isinstance(record, Report):
        return report_tables(record)
    if isinstance(record, ReportChange):
        return change_tables(record)
    if isinstance(record, CollectionDetails):
        return details_tables(ReportDetails("", (record,)))
    if isinstance(record, ReportDetails):
        return details_tables(record)
    if isinstance(record, TuningReport | GateVerdict):
        return {**tuple_tables(record), **_nested_tables(record)}
    raise DataError(
        f"no tables of {type(result).__name__}: give what compare, run_experiment, tune, gate or "
        "compare_reports returned, a Report, or the path of a report.json"
    )


def _nested_tables(record: BaseModel) -> dict[str, pd.DataFrame]:
    """Tables of records inside a record, such as ``plateau.points``."""
    parts = {name: getattr(record, name) for name in type(record).model_fields}
    return {
        f"{name}.{inner}": frame
        for name, part in parts.items()
        if isinstance(part, BaseModel)
        for inner, frame in tuple_tables(part).items()
    }
