"""The rule, row by row."""

import math

import numpy as np
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
from fusion_bench.stats.inference import RowInference

M = 0.005


def row(
    mean: float, error: float, *, p: float = 1.0, units: int = 2001, drawn: float | None = None
) -> RowInference:
    """A difference; with ``drawn`` all draws have this t*, else Student's t decides."""
    if drawn is None:
        return RowInference(mean, error, units, 100, p=p, repeat_width=0.0)
    shifts, errors = np.full(20_000, drawn * error), np.full(20_000, error)
    return RowInference(
        mean, error, units, 100, p=p, repeat_width=0.0, shifts=shifts, errors=errors
    )


#: changed, row → status; Student's one-sided 95 % quantile is 1.6456 here
TABLE = [
    (0, row(0.0, 0.0), "unchanged"),
    # the lower end above −m, not at it
    (50, row(0.0, M / 1.65), "pass"),
    (50, row(0.0, M / 1.64), "inconclusive"),
    (50, row(-M / 2, M / 2 / 1.65), "pass"),
    (50, row(-M / 2, M / 2 / 1.64), "inconclusive"),
    (50, row(0.1, 0.2), "inconclusive"),
    (50, row(0.0, M / 1.65, drawn=1.0), "pass"),
    (50, row(0.0, M / 1.65, drawn=2.0), "inconclusive"),  # draws stray farther than Student's t
    # the mean is below −m, and the family excludes 0
    (50, row(-0.010, 0.003, p=0.05), "regressed"),
    (50, row(-0.010, 0.003, p=0.0501), "inconclusive"),
    (50, row(-0.004, 0.001, p=0.001), "inconclusive"),
    (50, row(-M, 0.001, p=0.001), "inconclusive"),
    (50, row(-M - 1e-15, 0.001, p=0.001), "inconclusive"),  # float noise
    (50, row(-M - 1e-9, 0.001, p=0.001), "regressed"),
    (50, row(0.010, 0.010, p=0.001), "inconclusive"),  # a gain is no drop
    # no number is never a pass
    (50, row(math.nan, 0.001), "inconclusive"),
    (50, row(0.0, math.nan), "inconclusive"),
    (50, row(-0.010, 0.003, p=math.nan), "inconclusive"),
    (20, row(0.3, math.nan, units=1), "inconclusive"),
]


@pytest.mark.parametrize(("changed", "difference", "expected"), TABLE)
def test_the_status(changed: int, difference: RowInference, expected: CheckStatus) -> None:
    assert decide_status(difference, changed=changed, max_drop=M) == expected


def test_several_candidates_share_the_level() -> None:
    shown, passing = row(-0.010, 0.003, p=0.01), row(0.0, M / 2)
    for alpha, statuses in ((0.05, ("regressed", "pass")), (0.005, ("inconclusive",) * 2)):
        found = (
            decide_status(each, changed=50, max_drop=M, alpha=alpha) for each in (shown, passing)
        )
        assert tuple(found) == statuses


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
LENIENT = {"inconclusive": "warn"}
EXITS: list[tuple[list[CheckStatus], list[CheckResult | QueryCheck], dict[str, str], int]] = [
    (["unchanged"], [], DEFAULT, 0),
    (["pass", "unchanged"], [], DEFAULT, 0),
    (["pass", "regressed", "inconclusive"], [], DEFAULT, 1),
    (["pass", "regressed"], [], LENIENT, 1),
    # keys of earlier versions have no effect
    (["pass"], [], {"small_changes": "block"}, 0),
    (["pass", "regressed"], [], {"fell": "warn"}, 1),
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


def test_keys_of_earlier_versions_are_read_and_say_what_became_of_them() -> None:
    old = {"checks": {"RR": {"max_drop": M}}, "fell": "warn", "small_changes": "block"}
    policy = parse_model(GatePolicy, old)
    assert [text.split()[0] for text in policy.ended_keys] == ["gate.fell", "gate.small_changes"]
    assert all("has no effect" in text for text in policy.ended_keys)
    assert not {"fell", "small_changes"} & policy.model_dump().keys()
    assert parse_model(GatePolicy, {"checks": old["checks"]}).ended_keys == ()


@pytest.mark.parametrize(
    ("old", "new"), [("fell", "regressed"), ("pass on these queries", "pass"), ("pass", "pass")]
)
def test_statuses_of_earlier_versions_are_read(old: str, new: str) -> None:
    stored = check_result("pass").model_dump() | {"status": old}
    assert CheckResult.model_validate(stored).status == new
