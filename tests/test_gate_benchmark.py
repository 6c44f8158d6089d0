"""Both sides of the gate's benchmark compute the same p-values."""

from __future__ import annotations

from benchmarks.gate import AGREE, gate_p_values, make_checks, measure_row, scipy_p_values


def test_both_compute_the_same_p_values() -> None:
    checks = make_checks(300, 3, 2)
    ours = gate_p_values(checks, 10_000)
    scipy = scipy_p_values(checks[:2], 10_000)
    assert len(ours) == 6
    assert all(abs(a - b) < AGREE for a, b in zip(ours, scipy, strict=False))
    assert len(set(ours)) > 1


def test_a_row_says_what_was_measured() -> None:
    row = measure_row(200, 2, 1, 1_000, rounds=1)
    assert (row["queries"], row["measures"], row["collections"]) == (200, 2, 1)
    assert row["difference of p"] < 0.2
    assert row["seconds"] > 0
