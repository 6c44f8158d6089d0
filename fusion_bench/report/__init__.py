"""Reports: the versioned result file and everything rendered from it."""

from fusion_bench.evaluation.report_records import Report, read_report

__all__ = ["Report", "read_report"]
