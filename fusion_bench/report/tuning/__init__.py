"""What a tuning run found, and everything rendered from it."""

from fusion_bench.report.tuning.tuning_records import TuningReport, read_tuning

__all__ = ["TuningReport", "read_tuning"]
