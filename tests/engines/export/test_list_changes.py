"""Changed tops, other sets, and ties, against lists that are compared by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.engines.export import ListChanges, Precision, find_changes, rank_lists
from fusion_bench.experiment.system import System


def compare(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    top: int = 10,
    precision: Precision = "float32",
    cut: int | None = None,
) -> ListChanges:
    """Compare two lists of one query, document → score, each the only list of its system."""
    lists = {"a": first, "b": second}
    runs = [Run.from_dict(name, {"q": dict(scores)}) for name, scores in lists.items()]
    aligned = align(Qrels.from_dict({"q": {"d1": 1}}), runs)
    fusion = {"method": "weighted_score", "normalize": "none"}
    systems = [System(name, [name], fusion, top_k=k) for name, k in (("a", None), ("b", cut))]
    before, after = (rank_lists(system, aligned, {}, top) for system in systems)
    return find_changes(before, after, precision)


@pytest.mark.parametrize(
    ("second", "top", "changed", "other_set", "tied"),
    [
        ({"d1": 3.0, "d2": 2.0, "d3": 1.0}, 10, False, False, False),
        ({"d1": 9.0, "d2": 8.0, "d3": 7.0}, 10, False, False, False),
        ({"d2": 3.0, "d1": 2.0, "d3": 1.0}, 10, True, False, False),
        ({"d1": 3.0, "d2": 2.0, "d4": 1.0}, 10, True, True, False),
        ({"d1": 3.0, "d3": 2.0, "d2": 1.0}, 1, False, False, False),
        ({"d1": 3.0, "d3": 2.0, "d2": 1.0}, 2, True, True, False),
        ({"d1": 3.0, "d2": 2.0}, 10, True, True, False),
        ({"d2": 3.0000001, "d1": 3.0, "d3": 1.0}, 10, False, False, True),
        ({"d2": 3.00001, "d1": 3.0, "d3": 1.0}, 10, True, False, False),
    ],
)
def test_one_query(
    second: dict[str, float], top: int, changed: bool, other_set: bool, tied: bool
) -> None:
    changes = compare({"d1": 3.0, "d2": 2.0, "d3": 1.0}, second, top=top)
    assert changes.is_changed.tolist() == [changed]
    assert changes.is_other_set.tolist() == [other_set]
    assert changes.is_tied.tolist() == [tied]


def test_the_precision_decides_what_a_tie_is() -> None:
    first, second = {"d1": 2.0, "d2": 1.0}, {"d2": 1.0 + 1e-8, "d1": 1.0}
    assert compare(first, second).is_tied.tolist() == [True]
    assert compare(first, second, precision="float64").is_changed.tolist() == [True]


def test_a_document_that_is_cut_off_is_a_change() -> None:
    scores = {"d1": 3.0, "d2": 2.0}
    assert compare(scores, scores, cut=1).is_other_set.tolist() == [True]
    assert not compare(scores, scores, cut=2).is_changed.any()
