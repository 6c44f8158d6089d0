"""The page of a tuning run: its records, tables, findings and figures."""

from fusion_bench.report.tuning.tuning_page import build_page
from fusion_bench.report.tuning.tuning_records import TuningReport, read_tuning

__all__ = ["TuningReport", "build_page", "read_tuning"]
