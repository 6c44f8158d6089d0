"""The stored record of a tuning run; everything shown to people is rendered from it."""

from fusion_bench.report.tuning_records.pareto_front import (
    PairedDifference,
    ParetoFront,
    ParetoPoint,
    RerankerEffort,
)
from fusion_bench.report.tuning_records.thresholds import (
    CalibrationBin,
    ThresholdReport,
    ThresholdRule,
)
from fusion_bench.report.tuning_records.trials import Gain, ParameterInfo, Trial, Value
from fusion_bench.report.tuning_records.tuning_report import (
    FORMAT_VERSION,
    Choice,
    Fold,
    Importance,
    PerTypeResult,
    Plateau,
    TuningReport,
    TypeGain,
    read_tuning,
)

__all__ = [
    "FORMAT_VERSION",
    "CalibrationBin",
    "Choice",
    "Fold",
    "Gain",
    "Importance",
    "PairedDifference",
    "ParameterInfo",
    "ParetoFront",
    "ParetoPoint",
    "PerTypeResult",
    "Plateau",
    "RerankerEffort",
    "ThresholdReport",
    "ThresholdRule",
    "Trial",
    "TuningReport",
    "TypeGain",
    "Value",
    "read_tuning",
]
