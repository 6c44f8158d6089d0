"""The rule, row by row."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fusion_bench.gate.verdict import CheckStatus, decide_exit_code, decide_status

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


EXITS: list[tuple[list[str], dict[str, Any], int]] = [
    (["pass"], {}, 0),
    (["pass", "regressed", "inconclusive"], {}, 1),
    (["pass", "inconclusive"], {}, 3),
    (["pass", "inconclusive"], {"on_inconclusive": "warn"}, 0),
    (["pass", "inconclusive"], {"on_inconclusive": "pass"}, 0),
    (["pass"], {"has_violations": True}, 1),
    (["pass"], {"has_errors": True}, 2),
    (["pass"], {"has_errors": True, "on_inconclusive": "pass"}, 2),
    (["pass", "inconclusive"], {"has_errors": True}, 2),
    (["regressed"], {"has_errors": True}, 1),
    ([], {}, 2),  # nothing was checked
]


@pytest.mark.parametrize(("verdicts", "options", "expected"), EXITS)
def test_exit_code(verdicts: list[CheckStatus], options: dict[str, Any], expected: int) -> None:
    given: dict[str, Any] = {
        "has_violations": False,
        "has_errors": False,
        "on_inconclusive": "fail",
    } | options
    assert decide_exit_code(verdicts, **given) == expected
