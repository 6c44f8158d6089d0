"""Everything that a page shows as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusion_bench.api.results import find_record
from fusion_bench.errors import DataError
from fusion_bench.evaluation.details.report_details import CollectionDetails, ReportDetails
from fusion_bench.evaluation.report_changes import ReportChange
from fusion_bench.evaluation.report_file import Report
from fusion_bench.gate.result import GateVerdict
from fusion_bench.report.record_rows import record_rows, report_rows
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.util.formatting import make_frame

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A data frame; a key that a row lacks is missing there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return make_frame({name: [row.get(name) for row in rows] for name in names})


def report_tables(report: Report) -> dict[str, pd.DataFrame]:
    """``systems``, ``differences``, ``values``, ``lists``, ``lint``, and those of the details."""
    details = details_tables(report.details()) if report.has_details else {}
    return {**{name: frame_of(rows) for name, rows in report_rows(report).items()}, **details}


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
        return {name: frame_of(rows) for name, rows in record_rows(record).items()}
    raise DataError(
        f"no tables of {type(result).__name__}: give what compare, run_experiment, tune, gate or "
        "compare_reports returned, a Report, or the path of a report.json"
    )
