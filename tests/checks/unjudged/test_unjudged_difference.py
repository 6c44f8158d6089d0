"""Two systems as their unjudged documents could change the difference."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from fusion_bench.checks.unjudged import UnjudgedEvidence, UnjudgedResult, compare_unjudged
from fusion_bench.stats.comparison import Direction

BASELINE = UnjudgedEvidence(
    share=np.array([0.0, 0.1, 0.2, 0.1]),
    judged_only=np.array([0.4, 0.5, 0.6, 0.5]),
    filled=np.array([0.4, 0.5, 0.6, 0.5]),
)
CANDIDATE = UnjudgedEvidence(
    share=np.array([0.5, 0.6, 0.7, 0.6]),
    judged_only=np.array([0.7, 0.9, 0.8, 0.9]),
    filled=np.array([0.6, 0.6, 0.7, 0.7]),
)


def test_all_three_views() -> None:
    difference = compare_unjudged(CANDIDATE, BASELINE)
    record = difference.record
    assert (record.candidate_share, record.baseline_share) == pytest.approx((0.6, 0.1))
    assert record.judged_only == pytest.approx(0.325)
    assert record.low is not None
    assert record.high is not None
    assert 0 < record.low < 0.325 < record.high
    assert record.filled == pytest.approx(0.15)
    assert difference.decides(-1, 0.01)
    assert not difference.decides(1, 0.01)
    assert UnjudgedResult.model_validate_json(record.model_dump_json()) == record


def test_groups_widen_the_interval() -> None:
    groups = np.array([0, 0, 1, 1])
    plain, grouped = (
        compare_unjudged(CANDIDATE, BASELINE, groups=codes).record for codes in (None, groups)
    )
    assert plain.low is not None
    assert grouped.low is not None
    assert grouped.low < plain.low


def test_sparse_judgments_have_shares_alone() -> None:
    difference = compare_unjudged(CANDIDATE, BASELINE, kind="sparse")
    record = difference.record
    assert (record.judged_only, record.low, record.high, record.filled) == (None,) * 4
    assert record.candidate_share == pytest.approx(0.6)
    assert not difference.decides(-1, 0.01)


def test_without_a_formula_the_filled_difference_is_missing() -> None:
    unknown = UnjudgedEvidence(BASELINE.share, BASELINE.judged_only, None)
    assert compare_unjudged(CANDIDATE, unknown).filled is None


def test_lists_without_a_judged_document_decide_whatever_is_answered() -> None:
    blind = UnjudgedEvidence(CANDIDATE.share, CANDIDATE.judged_only, np.full(4, math.nan))
    difference = compare_unjudged(blind, BASELINE)
    assert all(difference.decides(direction, 0.01) for direction in get_args(Direction))
    assert difference.record.filled is None


def test_some_queries_alone() -> None:
    keep = np.array([True, False, False, True])
    pair = (evidence.select_queries(keep) for evidence in (CANDIDATE, BASELINE))
    assert compare_unjudged(*pair).filled == pytest.approx(0.2)
