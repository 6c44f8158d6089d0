"""The rule, row by row."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from fusion_bench.experiment.gate_settings import OnInconclusive
from fusion_bench.gate.result import CheckResult, QueryCheck, decide_exit_code
from fusion_bench.gate.verdict import CheckStatus, decide_status

NAN = math.nan
M = 0.005

#: mean, low, p_holm, changed → verdict
TABLE = [
    # the test rejects and the mean is below −m
    (-0.010, -0.015, 0.01, 50, "regressed"),
    (-0.010, -0.015, 0.049, 50, "regressed"),
    # … but not at the level itself, or above it
    (-0.010, -0.015, 0.05, 50, "inconclusive"),
    (-0.010, -0.015, 0.30, 50, "inconclusive"),
    # significant, and smaller than the tolerance: whether it passes is up to the bound
    (-0.004, -0.006, 0.001, 50, "inconclusive"),
    (-0.004, -0.0049, 0.001, 50, "pass"),
    (-M, -0.006, 0.001, 50, "inconclusive"),
    # the bound must be above −m, not at it
    (0.0, -M, 1.0, 50, "inconclusive"),
    (0.0, -0.00499, 1.0, 50, "pass"),
    (0.1, 0.05, 1.0, 50, "pass"),
    (0.1, -0.5, 1.0, 50, "inconclusive"),
    # fewer than ten changed queries: the mean against −m, and nothing else
    (-0.006, -1.0, 1.0, 9, "regressed"),
    (-M, -1.0, 1.0, 9, "pass"),
    (-M - 1e-15, -1.0, 1.0, 9, "pass"),  # float noise
    (0.0, 0.0, 1.0, 0, "pass"),
    (-0.004, -0.0049, 1.0, 10, "pass"),  # ten are enough for the bound
    # no number is never a pass
    (NAN, -0.001, 1.0, 50, "inconclusive"),
    (0.0, -0.001, NAN, 50, "inconclusive"),
    (NAN, NAN, 1.0, 50, "inconclusive"),
    (0.0, NAN, 1.0, 50, "inconclusive"),
    (-0.010, NAN, NAN, 50, "inconclusive"),
    (NAN, NAN, NAN, 0, "inconclusive"),
    (NAN, NAN, NAN, 9, "inconclusive"),
]


@pytest.mark.parametrize(("mean", "low", "p", "changed", "expected"), TABLE)
def test_decide(mean: float, low: float, p: float, changed: int, expected: CheckStatus) -> None:
    found = decide_status(mean=mean, lower_bound=low, p_holm=p, changed=changed, max_drop=M)
    assert found == expected


def check_result(status: CheckStatus, error: str | None = None) -> CheckResult:
    return CheckResult(
        collection="c",
        slice=None,
        measure="RR",
        max_drop=M,
        status=status,
        error=error,
        queries=1,
        groups=1,
    )


def query_check(*, error: str | None = None) -> QueryCheck:
    """A guard that does not hold, or could not be checked."""
    return QueryCheck(collection="c", error=error, holds=False)


PASS, REGRESSED, UNCLEAR = map(check_result, get_args(CheckStatus))
VIOLATED, BROKEN = query_check(), query_check(error="no such query")
EMPTY = check_result("inconclusive", "no query")
EXITS: list[tuple[list[CheckResult], list[QueryCheck], OnInconclusive, int]] = [
    ([PASS], [], "fail", 0),
    ([PASS, REGRESSED, UNCLEAR], [], "fail", 1),
    ([PASS, UNCLEAR], [], "fail", 3),
    ([PASS, UNCLEAR], [], "warn", 0),
    ([PASS, UNCLEAR], [], "pass", 0),
    ([PASS], [VIOLATED], "fail", 1),
    ([PASS], [BROKEN], "fail", 2),
    ([PASS, EMPTY], [], "pass", 2),
    ([PASS, UNCLEAR, EMPTY], [], "fail", 2),
    ([REGRESSED], [BROKEN], "fail", 1),
    ([EMPTY], [], "pass", 2),
    ([], [], "fail", 2),  # nothing was checked
]


@pytest.mark.parametrize(("checks", "query_checks", "policy", "expected"), EXITS)
def test_exit_code(
    checks: list[CheckResult],
    query_checks: list[QueryCheck],
    policy: OnInconclusive,
    expected: int,
) -> None:
    assert decide_exit_code(checks, query_checks, policy) == expected
