"""The tables of an evaluation, and of what stands behind its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fusion_bench.api.tables.flat_rows import flatten, frame_of, named_rows
from fusion_bench.evaluation.details.records import CollectionDetails, ReportDetails
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report

if TYPE_CHECKING:
    import pandas as pd


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
