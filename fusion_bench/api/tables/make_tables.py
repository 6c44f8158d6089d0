"""The tables of whatever a function returned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from fusion_bench.api.tables.flat_rows import tuple_tables
from fusion_bench.api.tables.report_tables import change_tables, details_tables, report_tables
from fusion_bench.errors import DataError
from fusion_bench.evaluation.details.records import CollectionDetails, ReportDetails
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.read_report import read_report
from fusion_bench.gate.result import GateVerdict
from fusion_bench.report.tuning_records.tuning_report import TuningReport

if TYPE_CHECKING:
    import pandas as pd


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
    if isinstance(result, str | os.PathLike):
        return report_tables(read_report(Path(result)))
    record = getattr(result, "report", result)
    if isinstance(result, ReportDetails | CollectionDetails | ReportChange):
        record = result
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
