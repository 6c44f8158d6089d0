"""Both sides of the gate's benchmark compute the same p-values."""

from benchmarks.gate import gate_p_values, largest_difference, make_checks, scipy_p_values


def test_both_compute_the_same_p_values() -> None:
    checks = make_checks(300, 3, 2)
    gate = gate_p_values(checks, 10_000)
    scipy = scipy_p_values(checks[:2], 10_000)
    assert len(gate) == 6
    limit = largest_difference(10_000)
    assert all(abs(a - b) < limit for a, b in zip(gate, scipy, strict=False))
    assert len(set(gate)) > 1
