"""Which answer a comparison gets, and at which numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.stats.comparison import Answer, decide_answer, has_few_changes
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.max_t import RowResult
from tests.stats.samples import normal

ROW = RowResult(
    estimate=estimate_mean(0.01 + 0.001 * normal(40)),
    p=0.01,
    p_floor=False,
    low=0.001,
    high=0.02,
    critical_value=2.0,
    decision="clear",
    is_within=False,
    within_decision="clear",
)
WORSE = replace(ROW, estimate=estimate_mean(-0.01 + 0.001 * normal(40)))


@pytest.mark.parametrize(
    ("row", "changed", "expected"),
    [
        (ROW, 40, "better"),
        (WORSE, 40, "worse"),
        (replace(ROW, p=0.05), 40, "better"),  # p ≤ α
        (replace(ROW, p=0.0501), 40, "not shown"),
        (replace(ROW, is_within=True), 40, "better, by less than min_gain"),
        (replace(WORSE, is_within=True), 40, "worse, by less than min_gain"),
        (replace(ROW, is_within=True, within_decision="open"), 40, "better"),
        (replace(ROW, p=0.2, is_within=True), 40, "equivalent"),
        (replace(ROW, p=0.2, is_within=True, within_decision="open"), 40, None),
        (replace(ROW, p=0.2, within_decision="open"), 40, None),
        (replace(ROW, decision="open"), 40, None),
        (replace(ROW, p=0.2, is_within=True), 9, "not shown"),  # too few changed queries
        (replace(ROW, is_within=True), 9, "better"),
        (replace(ROW, p=0.2, is_within=True), 10, "equivalent"),
        (replace(ROW, p=1.0, is_within=True), 0, "identical"),
    ],
)
def test_answers(row: RowResult, changed: int, expected: Answer | None) -> None:
    wanted = expected or "not shown (within simulation error)"
    assert decide_answer(row, changed=changed) == wanted


def test_few_groups_are_never_equivalent() -> None:
    groups = np.arange(40) // 3  # 14 groups
    row = replace(ROW, p=0.2, is_within=True, estimate=estimate_mean(normal(40), groups))
    assert decide_answer(row, changed=40) == "not shown"


def test_the_level_is_the_given_one() -> None:
    assert decide_answer(replace(ROW, p=0.02), changed=40, alpha=0.01) == "not shown"
    assert decide_answer(replace(ROW, p=0.08), changed=40, alpha=0.1) == "better"


@pytest.mark.parametrize(
    ("changed", "groups", "expected"),
    [(10, 20, False), (9, 20, True), (10, 19, True), (0, 100, True)],
)
def test_few_changes(changed: int, groups: int, expected: bool) -> None:
    assert has_few_changes(changed, groups) is expected
