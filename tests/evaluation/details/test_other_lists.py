"""Systems without a source, and on shorter lists: against the same lists made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fusion_bench.evaluation.details.source_effects import (
    LeftOut,
    leave_sources_out,
    measure_depths,
)
from fusion_bench.ranking.plain_systems import fit_system
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import estimate_mean
from tests.evaluation.details.cases import (
    MEASURE,
    SPACES,
    SYSTEMS,
    Case,
    detail,
    make_case,
    make_system,
)

RRF = {"fusion": {"method": "rrf", "k": 3, "weights": {"b": 2.0}}}


def left_out(case: Case, config: dict[str, Any], source: str) -> LeftOut:
    found = leave_sources_out(detail(case, make_system(config)), case.align())
    [row] = [row for row in found.rows if row.source == source]
    return row


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("config", "without"),
    [
        (RRF, {"runs": ["b", "c"], **RRF}),
        (SYSTEMS[2], {**SYSTEMS[2], "runs": ["b", "c"]}),
        (SYSTEMS[3], {**SYSTEMS[3], "runs": ["b", "c"]}),
        (SYSTEMS[4], {**SYSTEMS[4], "runs": ["b", "c"]}),
        (SYSTEMS[5], {**SYSTEMS[5], "stages": {"inner": {"runs": ["b"], "top_k": 5}}}),
    ],
    ids=str,
)
def test_without_a_source(config: dict[str, Any], without: dict[str, Any], seed: int) -> None:
    case = make_case(seed)
    row = left_out(case, config, "a")
    whole, rest = (make_system(each) for each in (config, without))
    lists = {name: rows for name, rows in case.lists.items() if name != "a"}
    [now] = evaluate_systems([rest], case.align(lists), [MEASURE], spaces=SPACES)
    [before] = evaluate_systems([whole], case.align(), [MEASURE], spaces=SPACES)
    assert row.mean == pytest.approx(now.values.mean(), rel=1e-12)
    estimate = estimate_mean(now.values[0] - before.values[0])
    assert row.difference == pytest.approx(estimate.mean, abs=1e-12)
    assert row.reason == ""
    ends = (max(estimate.low, -1), min(estimate.high, 1))
    assert (row.low, row.high) == pytest.approx(ends, abs=1e-9)


def test_a_trained_fusion_sees_a_source_that_returned_nothing() -> None:
    case = make_case(2)
    config = {"fusion": {"method": "prob_fuse", "segments": 2}}
    fitted = fit_system(make_system(config), case.align(), SPACES)
    rest = np.array([False, True, True, True, True])  # a list must answer some query: not these
    runs = case.align({**case.lists, "a": {"q0": {"d00": 1.0}}}).subset(rest)
    [expected] = evaluate_systems([fitted], runs, [MEASURE], spaces=SPACES)
    runs = case.align().subset(rest)
    row = leave_sources_out(detail(case, fitted, runs=runs), runs).rows[0]
    assert (row.source, row.reason) == ("a", "")
    assert row.mean == pytest.approx(expected.values[0].mean(), rel=1e-12)
    assert row.difference != 0


def test_a_system_that_needs_the_source_says_so() -> None:
    row = left_out(make_case(0), SYSTEMS[3], "b")
    assert math.isnan(row.mean)
    assert "role 'question'" in row.reason


def test_the_others_are_evaluated_all_the_same() -> None:
    case = make_case(0)
    first, second = make_system(SYSTEMS[3]), make_system(RRF).model_copy(update={"name": "t"})
    found = leave_sources_out(detail(case, first, second), case.align())
    assert [(row.system, row.source) for row in found.rows] == [
        (system, source) for system in "st" for source in "abc"
    ]
    assert [bool(row.reason) for row in found.rows] == [False, True, False, False, False, False]
    assert found.to_pandas()["difference"].isna().tolist() == [bool(r.reason) for r in found.rows]
    assert found.to_dict()["rows"][1]["mean"] is None


def test_a_single_source_cannot_be_left_out() -> None:
    found = leave_sources_out(detail(make_case(0), make_system(SYSTEMS[0])), make_case(0).align())
    assert found.rows == ()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("config", [RRF, *SYSTEMS[2:]], ids=str)
def test_shorter_lists(config: dict[str, Any], seed: int) -> None:
    case = make_case(seed)
    found = measure_depths(detail(case, make_system(config)), case.align())
    longest = max(len(rows) for run in case.lists.values() for rows in run.values())
    assert [row.depth for row in found.rows] == [d for d in (5, 10) if d < longest] + [longest]
    for row in found.rows:
        cut = {
            name: {query: _first(rows, row.depth) for query, rows in lists.items()}
            for name, lists in case.lists.items()
        }
        [expected] = evaluate_systems(
            [make_system(config)], case.align(cut), [MEASURE], spaces=SPACES
        )
        assert row.mean == pytest.approx(np.mean(expected.values[0]), rel=1e-12)


def _first(rows: dict[str, float], depth: int) -> dict[str, float]:
    """The best documents; of equal scores the greater id goes first."""
    ordered = sorted(rows, reverse=True)
    ordered.sort(key=lambda document: -rows[document])
    return {document: rows[document] for document in ordered[:depth]}
