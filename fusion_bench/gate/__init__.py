"""The regression gate: check a candidate configuration against a committed baseline."""

from fusion_bench.gate.baseline import Baseline, baseline_path, read_baseline
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate, update_baseline

__all__ = [
    "Baseline",
    "GateInputs",
    "GateVerdict",
    "baseline_path",
    "read_baseline",
    "run_gate",
    "update_baseline",
]
