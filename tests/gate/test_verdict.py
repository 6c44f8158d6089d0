"""The rule, row by row."""

import math

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import GatePolicy
from fusion_bench.gate.comparison import decide_exit_code
from fusion_bench.gate.verdict import (
    CheckResult,
    CheckStatus,
    QueryCheck,
    decide_status,
    find_blocking,
)

NAN = math.nan
M = 0.005

#: changed, mean, t bound, betting bound, p of fell, p of regressed → status
TABLE = [
    (0, 0.0, 0.0, -0.02, 1.0, 1.0, "unchanged"),
    # both bounds above −m, not at it
    (50, 0.0, -0.00499, -0.00499, 1.0, 1.0, "pass"),
    (50, 0.0, -0.00499, -M, 1.0, 1.0, "pass on these queries"),
    (50, 0.0, -M, -0.00499, 1.0, 1.0, "inconclusive"),
    (50, 0.1, -0.5, 0.05, 1.0, 1.0, "inconclusive"),
    (1, -0.001, -0.002, -0.5, 1.0, 1.0, "pass on these queries"),
    # the mean is below −m and the sign-flip test rejects; the t test says by how much
    (50, -0.010, -0.015, -0.9, 0.01, 0.01, "regressed"),
    (50, -0.010, -0.015, -0.9, 0.05, 0.05, "regressed"),
    (50, -0.010, -0.015, -0.9, 0.05, 0.051, "fell"),
    (50, -0.010, -0.015, -0.9, 0.051, 0.01, "inconclusive"),
    # significant, and not below −m: whether it passes is up to the bounds
    (50, -0.004, -0.006, -0.9, 0.001, 1.0, "inconclusive"),
    (50, -0.004, -0.0049, -0.9, 0.001, 1.0, "pass on these queries"),
    (50, -M, -0.006, -0.9, 0.001, 0.5, "inconclusive"),
    (50, -M - 1e-15, -0.006, -0.9, 0.001, 0.5, "inconclusive"),  # float noise
    # no number is never a pass
    (50, NAN, -0.001, -0.001, 1.0, 1.0, "inconclusive"),
    (50, 0.0, -0.001, -0.001, NAN, 1.0, "inconclusive"),
    (50, 0.0, NAN, -0.001, 1.0, 1.0, "inconclusive"),
    (50, 0.0, -0.001, NAN, 1.0, 1.0, "pass on these queries"),
    (50, -0.010, NAN, NAN, 0.01, NAN, "fell"),
    (0, NAN, NAN, NAN, NAN, NAN, "inconclusive"),
]


@pytest.mark.parametrize(
    ("changed", "mean", "t_bound", "betting", "p_fell", "p_regressed", "expected"), TABLE
)
def test_the_status(
    changed: int,
    mean: float,
    t_bound: float,
    betting: float,
    p_fell: float,
    p_regressed: float,
    expected: CheckStatus,
) -> None:
    status = decide_status(
        changed=changed,
        mean=mean,
        max_drop=M,
        t_bound=t_bound,
        betting_bound=betting,
        p_fell=p_fell,
        p_regressed=p_regressed,
    )
    assert status == expected


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


VIOLATED, BROKEN = query_check(), query_check(error="no such query")
EMPTY = check_result("inconclusive", "no query")
DEFAULT: dict[str, str] = {}
LENIENT = {"fell": "warn", "inconclusive": "warn"}
EXITS: list[tuple[list[CheckStatus], list[CheckResult | QueryCheck], dict[str, str], int]] = [
    (["unchanged"], [], DEFAULT, 0),
    (["pass", "unchanged"], [], DEFAULT, 0),
    (["pass on these queries"], [], DEFAULT, 0),
    (["pass on these queries"], [], {"small_changes": "block"}, 3),
    (["pass", "regressed", "inconclusive"], [], DEFAULT, 1),
    (["pass", "regressed"], [], LENIENT, 1),
    (["pass", "fell"], [], DEFAULT, 1),
    (["pass", "fell"], [], LENIENT, 0),
    (["pass", "fell", "inconclusive"], [], {"fell": "warn"}, 3),
    (["pass", "inconclusive"], [], DEFAULT, 3),
    (["pass", "inconclusive"], [], LENIENT, 0),
    (["pass", "unjudged decide"], [], LENIENT, 3),
    (["pass"], [VIOLATED], DEFAULT, 1),
    (["pass"], [BROKEN], DEFAULT, 2),
    (["pass"], [EMPTY], LENIENT, 2),
    (["pass", "inconclusive"], [EMPTY], DEFAULT, 2),
    (["regressed"], [BROKEN], DEFAULT, 1),
    ([], [EMPTY], LENIENT, 2),
    ([], [], DEFAULT, 2),  # nothing was checked
]


@pytest.mark.parametrize(("statuses", "others", "policy", "expected"), EXITS)
def test_exit_code(
    statuses: list[CheckStatus],
    others: list[CheckResult | QueryCheck],
    policy: dict[str, str],
    expected: int,
) -> None:
    checks = [check_result(status) for status in statuses]
    checks += [other for other in others if isinstance(other, CheckResult)]
    query_checks = [other for other in others if isinstance(other, QueryCheck)]
    read = parse_model(GatePolicy, {"checks": {"RR": {"max_drop": M}}, **policy})
    assert decide_exit_code(checks, query_checks, find_blocking(read)) == expected


@pytest.mark.parametrize(("old", "new"), [("fail", "block"), ("pass", "warn")])
def test_an_old_value_of_the_policy_names_the_new_one(old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=f"inconclusive: '{old}' is called '{new}' now"):
        parse_model(GatePolicy, {"checks": {"RR": {"max_drop": M}}, "inconclusive": old})
