"""The regression gate: a candidate configuration is held to a committed baseline."""

from fusion_bench.gate.baseline import Baseline, baseline_path, read_baseline
from fusion_bench.gate.result import GateResult
from fusion_bench.gate.run import judge
from fusion_bench.gate.update import update

__all__ = ["Baseline", "GateResult", "baseline_path", "judge", "read_baseline", "update"]
