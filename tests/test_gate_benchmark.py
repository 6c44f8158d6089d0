"""Both sides of the gate's benchmark compute the same lower ends."""

from benchmarks.gate import AGREEMENT, gate_ends, make_checks, scipy_ends
from fusion_bench.gate.tolerances import standard_error


def test_both_compute_the_same_lower_ends() -> None:
    checks = make_checks(300, 3, 2)
    gate = gate_ends(checks)
    scipy = scipy_ends(checks[:2])
    assert len(gate) == 6
    for check, ours, theirs in zip(checks, gate, scipy, strict=False):
        assert abs(ours - theirs) < AGREEMENT * standard_error(check)
    assert len(set(gate)) > 1
