"""Differences that a report does not store have intervals within the bounds of the measure."""

from __future__ import annotations

import pytest

from fusion_bench.report.evaluation_tables import paired_difference
from tests.report.cases import PRIMARY, collection, report, system

FIRST, SECOND = (1.0, 0.0, 1.0), (0.0, 1.0, 0.0)


@pytest.mark.parametrize(("measure", "is_bounded"), [(PRIMARY, True), ("gain@10", False)])
def test_the_interval_of_a_bounded_measure_stays_within_its_bounds(
    measure: str, is_bounded: bool
) -> None:
    item = collection(system("base", *FIRST), measures=(measure,))
    result = paired_difference(report(item), item, FIRST, SECOND)
    assert result is not None
    assert result.mean == pytest.approx(1 / 3)
    assert (result.low >= -1, result.high <= 1) == (is_bounded, is_bounded)
