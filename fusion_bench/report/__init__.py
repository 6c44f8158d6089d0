"""Reports: the versioned result file and everything rendered from it."""

from fusion_bench.report.model import Report, read_report

__all__ = ["Report", "read_report"]
