"""The report that an output folder holds, before it is overwritten."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.read_report import read_report

#: Its file in an output folder.
FILE = "report.json"


def read_last_report(folder: Path) -> Report | None:
    """The report in a folder; None where there is none that this version reads.

    A report that is there is only compared with: it never stands in the way of a new one.

    Args:
        folder: Where the new report goes.
    """
    path = folder / FILE
    try:
        return read_report(path) if path.is_file() else None
    except (FusionBenchError, OSError):
        return None
