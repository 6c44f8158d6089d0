"""The design effect where there are groups."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.data.query_groups import Grouping
from fusion_bench.report.evaluation_findings import group_finding
from fusion_bench.stats.intervals import estimate_mean
from tests.report.cases import collection, fused, report, system

BASE = system("base", 0.1, 0.2, 0.3, 0.4)
GROUPS = ("a", "a", "b", "b")


def test_without_groups_there_is_none() -> None:
    found = collection(BASE, fused("new", 0.5, 0.5, 0.1, 0.1))
    assert group_finding(report(found), found) is None


@pytest.mark.parametrize("grouping", ["auto", "none"])
def test_what_the_dataset_chose_is_said_with_and_without_groups(grouping: Grouping) -> None:
    for groups in (GROUPS, ("a", "b", "c", "d")):
        found = collection(BASE, fused("new", 0.5, 0.5, 0.1, 0.1), groups=groups, grouping=grouping)
        result = group_finding(report(found), found)
        assert result is not None
        assert f"groups: {grouping}:" in result.text
        assert ("2 groups" in result.text) == (groups == GROUPS)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([(0.5, 0.6, 0.3, 0.4)], "4 queries in 2 groups: design effect 3 ("),
        ([(0.5, 0.6, 0.3, 0.4), (0.5, 0.2, 0.8, 0.5)], "2 groups: design effect 0.18 to 3 ("),
        ([(0.1, 0.2, 0.3, 0.4)], "4 queries in 2 groups."),
    ],
)
def test_the_range_over_the_systems(values: list[tuple[float, ...]], text: str) -> None:
    rows = [fused(f"s{i}", *row) for i, row in enumerate(values)]
    found = collection(BASE, *rows, groups=GROUPS)
    result = group_finding(report(found), found)
    assert result is not None
    assert text in result.text


def test_the_effect_is_the_ratio_of_the_variances() -> None:
    values, groups = np.array([0.4, 0.3, 0.1, -0.2, 0.0]), np.array([0, 0, 0, 1, 2])
    by_group, plain = estimate_mean(values, groups), estimate_mean(values)
    ratio = (by_group.standard_error / plain.standard_error) ** 2
    assert by_group.design_effect == pytest.approx(ratio)
    assert plain.design_effect == pytest.approx(1)
    assert estimate_mean(np.zeros(3)).design_effect is None
    assert estimate_mean(values, np.zeros(5, dtype=np.int64)).design_effect is None
