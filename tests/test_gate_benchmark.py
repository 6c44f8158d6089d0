"""A benchmark of wrong numbers is none: both contestants of the gate's must agree."""

from __future__ import annotations

from benchmarks.gate import AGREE, bench, contests, ours, theirs


def test_both_find_the_same_p() -> None:
    checks = contests(300, 3, 2)
    mine = [evidence.p for evidence in ours(checks, 10_000)]
    scipy = theirs(checks[:2], 10_000)
    assert len(mine) == 6
    assert all(abs(a - b) < AGREE for a, b in zip(mine, scipy, strict=False))
    assert len(set(mine)) > 1


def test_a_row_says_what_was_done() -> None:
    row = bench(200, 2, 1, 1_000, rounds=1)
    assert (row["queries"], row["measures"], row["collections"]) == (200, 2, 1)
    assert row["difference of p"] < 0.2
    assert row["seconds"] > 0
