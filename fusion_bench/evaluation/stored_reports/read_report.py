"""Reading a ``report.json``."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.config.files.json_records import read_stored
from fusion_bench.errors import DataError
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.consistency import find_inconsistencies

REMEDY = "run the experiment again"


def read_report(path: Path | str) -> Report:
    """Read a ``report.json`` and check that its numbers agree.

    Raises:
        DataError: No such file, not a report, a format this version does not know, or numbers that
            no evaluation would have written.
    """
    report = read_stored(Path(path), Report, what="report", remedy=REMEDY)
    problem = next(find_inconsistencies(report), None)
    if problem is not None:
        raise DataError(f"{path}: {problem}: {REMEDY}")
    return report
