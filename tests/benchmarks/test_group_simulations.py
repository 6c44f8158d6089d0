"""The simulations of groups, in toy size."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.simulations import cr2, groups, undeclared_groups
from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.stats.intervals import estimate_mean


def test_covered_runs_are_those_of_the_intervals() -> None:
    sizes = np.array([1, 3, 6])
    codes = np.repeat(np.arange(3), sizes)
    values = np.random.default_rng(2).standard_normal((40, 10)) + 0.5
    sums = np.stack([values[:, codes == group].sum(axis=1) for group in range(3)], axis=1)
    estimates = [estimate_mean(row, codes) for row in values]
    assert cr2.count_covered(sums, sizes)[0] == sum(e.low <= 0 <= e.high for e in estimates)


def test_the_usual_interval_is_the_same_for_equal_sizes() -> None:
    by_design: dict[str, set[int]] = {}
    for promise in cr2.run(draws=50):
        by_design.setdefault(promise.design, set()).add(promise.count)
    equal = [counts for design, counts in by_design.items() if design.startswith("20 of 8")]
    assert [len(counts) for counts in equal] == [1] * 4


@pytest.mark.parametrize("design", groups.DESIGNS)
def test_all_copies_are_found_and_nothing_else(design: groups.Design) -> None:
    found = groups.search_queries(np.random.default_rng(3), design.originals)
    codes, true = found.codes, np.array(design.originals)
    assert (codes == true).all()
    assert len(true) == groups.QUERIES


def test_what_is_measured() -> None:
    measured = groups.run(draws=2)
    promises = [each for each in measured if isinstance(each, Promise)]
    assert [each.event for each in promises] == [*groups.EVENTS] * 2
    assert [each.quantity for each in measured if isinstance(each, Estimate)] == [
        "share of the true pairs found",
        "false links",
    ] * 2


@pytest.mark.parametrize(
    ("position", "groups_left", "withheld"), [(0, 200, 2), (1, 100, 0), (2, 140, 0), (3, 200, 2)]
)
def test_the_default_joins_what_is_identical_and_withholds_the_rest(
    monkeypatch: pytest.MonkeyPatch, position: int, groups_left: int, withheld: int
) -> None:
    design = undeclared_groups.DESIGNS[position]
    drawn = groups.draw_dataset(
        np.random.default_rng(4), design.originals, identical=design.identical
    )
    names = [query.group or query.id for query in drawn.queries.values()]
    assert len(set(names)) == groups_left if design.identical else groups_left >= 190
    monkeypatch.setattr(undeclared_groups, "DESIGNS", (design,))
    counts = {each.event: each.count for each in undeclared_groups.run(draws=2)}
    assert counts["ship is withheld"] == withheld
    if withheld:
        assert counts["ships by default"] == 0
