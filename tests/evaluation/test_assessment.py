"""Everything measured of one ranking, on numbers made by hand."""

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.evaluation.assessment import Assessment, assess_system
from fusion_bench.evaluation.results import perfect_order_values
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure

QRELS = Qrels.from_dict({"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d9": 1}, "q3": {"d5": 1}})
RUN = Run.from_dict(
    "a", {"q1": {"d4": 4.0, "d3": 3.0, "d2": 2.0, "d1": 1.0}, "q3": {"d5": 1.0}, "q8": {"d1": 1.0}}
)
MEASURES = [parse_measure("RR@10"), parse_measure("nDCG@2"), parse_measure("R@3")]


def assessed(*, complete: bool = False, **options: object) -> Assessment:
    runs = align(QRELS, [RUN], complete=complete)
    system = System.model_validate({"name": "a", "runs": ["a"], **options})
    return assess_system(system, runs, MEASURES)


def test_values_by_hand() -> None:
    found = assessed()
    assert found.values[0].tolist() == pytest.approx([1 / 3, 0, 1])
    assert found.values[1].tolist() == pytest.approx([0, 0, 1])
    assert found.values[2].tolist() == pytest.approx([1 / 2, 0, 1])
    assert found.candidates == 5


def test_judged_documents_alone_move_up() -> None:
    assert assessed().unjudged.judged_only.tolist() == pytest.approx([1 / 2, 0, 1])
    assert assessed(complete=True).unjudged.judged_only.tolist() == pytest.approx([1 / 3, 0, 1])


def test_the_unjudged_share_is_of_what_is_returned() -> None:
    assert assessed().unjudged.share.tolist() == pytest.approx([1 / 4, 0, 0])
    assert assessed(top_k=1).unjudged.share.tolist() == pytest.approx([1, 0, 0])
    assert assessed(complete=True).unjudged.share.tolist() == [0, 0, 0]
    long = Run.from_dict("a", {"q1": {f"x{n:02}": float(-n) for n in range(30)} | {"d1": 99.0}})
    runs = align(QRELS, [long])
    system = System(name="a", runs=("a",))
    found = assess_system(system, runs, MEASURES)
    assert found.unjudged.share[0] == pytest.approx(9 / 10)


def test_a_tie_across_the_cut_decides_what_is_returned() -> None:
    qrels = Qrels.from_dict({"q": {"a": 1}})
    run = Run.from_dict("r", {"q": {"a": 1.0, "b": 1.0}})
    system = System.model_validate(
        {"name": "s", "runs": ["r"], "fusion": "weighted_score", "top_k": 1}
    )
    found = assess_system(system, align(qrels, [run]), MEASURES[2:])
    assert found.ties.affected.tolist() == [1]
    assert (found.values[0, 0], found.ties.minimum[0, 0], found.ties.maximum[0, 0]) == (0, 0, 1)
    assert found.ties.expected[0, 0] == pytest.approx(0.5)


def test_the_perfect_order_of_the_pool() -> None:
    values = perfect_order_values(align(QRELS, [RUN]), MEASURES)
    # q2: the only relevant document is in no list.
    assert values.tolist() == [[1, 0, 1], [1, 0, 1], [1, 0, 1]]


def test_the_perfect_order_puts_judged_documents_first() -> None:
    qrels = Qrels.from_dict({"q": {"a": 0, "b": 0}})
    run = Run.from_dict("r", {"q": {"z": 3.0, "b": 2.0, "a": 1.0}})
    judged = perfect_order_values(align(qrels, [run]), [parse_measure("Judged@2")])
    assert judged.tolist() == [[1]]


def test_a_cut_leaves_the_judged_only_values_alone() -> None:
    """Without the unjudged documents others move up, and a cut must not keep them from it."""
    whole, cut = assessed(), assessed(top_k=1)
    assert cut.unjudged.judged_only.tolist() == whole.unjudged.judged_only.tolist()
    assert cut.values.tolist() != whole.values.tolist()
