"""What unjudged documents could change, on lists made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusion_bench.checks.unjudged import UnjudgedEvidence, measure_unjudged
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure

QRELS = Qrels.from_dict({"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 0}, "q3": {"e": 1}})
RUN = Run.from_dict(
    "r",
    {
        "q1": {"x": 3.0, "a": 2.0, "b": 1.0},
        "q2": {"c": 3.0, "y": 2.0, "z": 1.0},
        "q3": {"d": 3.0, "w": 2.0, "e": 1.0},
    },
)
TYPES = {"q1": "local", "q2": "global", "q3": "local"}


def measured(*names: str, **options: object) -> tuple[UnjudgedEvidence, ...]:
    system = System.model_validate({"name": "s", "runs": ["r"], **options})
    measures = [parse_measure(name) for name in names]
    return measure_unjudged(system, align(QRELS, [RUN]), measures)


def test_by_hand() -> None:
    values, judged = measured("P@2", "Judged@10")
    assert values.share == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert values.judged_only == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    # Rank 1: c is relevant, x and d (of q3) are unjudged, so both gain 1. Rank 2: a is relevant.
    assert values.filled == pytest.approx([1, 1, 1])
    assert judged.filled is None


def test_ranks_without_a_judged_document_take_the_nearest_that_has_one() -> None:
    [values] = measured("P@3")
    # Rank 3: b is not relevant, e is: z gains one half.
    assert values.filled == pytest.approx([2 / 3, 2.5 / 3, 3 / 3])


def test_a_cut_list_is_filled_as_far_as_it_is_returned() -> None:
    [values] = measured("P@3", top_k=1)
    assert values.filled == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert values.share == pytest.approx([1, 0, 1])


def test_means_are_taken_over_all_parts_of_a_system() -> None:
    """One plain system for each query type, and still one mean at each rank."""
    queries = {name: Query(id=name, type=kind) for name, kind in TYPES.items()}
    runs = align(QRELS, [RUN, replace(RUN, name="other")], queries=queries)
    weights = {kind: {"r": 0.6, "other": 0.4} for kind in ("local", "global", "hybrid")}
    parts = System.model_validate(
        {"name": "s", "runs": ["r", "other"], "fusion": "rrf", "weights_by_type": weights}
    )
    alone = System(name="s", runs=("r",))
    by_type, whole = (
        measure_unjudged(system, runs, [parse_measure("P@2")])[0].filled
        for system in (parts, alone)
    )
    assert by_type is not None
    assert whole is not None
    assert by_type.tolist() == whole.tolist()
