"""What was measured, as the records of a report."""

from pathlib import Path

import pytest

from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.records import ListInfo
from fusion_bench.data.alignment import align
from fusion_bench.io.dataset import load_dataset
from fusion_bench.stats.intervals import estimate_mean
from tests.evaluation.test_run_experiment import collection
from tests.tiny import DATASET, EXPERIMENT, edit


def infos(root: Path) -> list[ListInfo]:
    dataset = load_dataset(root / DATASET)
    rerankers = list(dataset.rerankers.values())
    runs = align(dataset.qrels, list(dataset.runs.values()), rerankers=rerankers)
    return list_infos([(dataset, runs)])


def test_what_is_worth_knowing_of_each_list(root: Path) -> None:
    edit(root, "datasets/tiny/a.trec", "q3 Q0 d1 1 5 a\n", "q9 Q0 d1 1 0 a\nq9 Q0 d1 2 0 a\n")
    edit(root, DATASET, "roles: [keyword]", "roles: [keyword], on_duplicate: best_rank")
    a, b, r = infos(root)
    assert (a.name, a.kind, a.roles, a.score_space) == ("a", "run", ("keyword",), None)
    assert (a.unanswered_queries, a.unjudged_queries) == (1, 1)
    assert (a.duplicate_rows, a.zero_scores) == (1, 2)
    assert a.read_options["on_duplicate"] == "best_rank"
    assert (b.roles, b.unanswered_queries, b.unjudged_queries) == (("question", "semantic"), 0, 0)
    assert (r.kind, r.score_space) == ("rerank", "unit")


def test_a_list_whose_rows_were_all_dropped_answered_nothing(root: Path) -> None:
    edit(root, DATASET, "roles: [keyword]", "roles: [keyword], drop_zero_scores: true")
    edit(root, "datasets/tiny/a.trec", "q3 Q0 d1 1 5 a", "q3 Q0 d1 1 0 a")
    assert infos(root)[0].unanswered_queries == 1


def test_intervals_are_by_group(root: Path) -> None:
    found = collection(root).system("best source per query (oracle)").measures["RR@10"]
    assert found.values == (1, 0.5, 1)
    import numpy as np

    expected = estimate_mean(np.array([1, 0.5, 1]), np.array([0, 0, 1])).clip(0, 1)
    alone = estimate_mean(np.array([1, 0.5, 1]), None)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.low != pytest.approx(alone.low)


def test_judged_documents_alone(root: Path) -> None:
    edit(root, EXPERIMENT, "  two:\n", "  a: {runs: [a]}\n  two:\n")
    found = collection(root)
    a = found.system("a")
    # Without d8 and d5, which nobody judged, q2 and q4 are answered at once; d2 of q1 is judged.
    assert a.measures["RR@10"].values == (0.5, 0.5, 0.5)
    assert a.judged_only == (0.5, 1, 1)
    assert a.unjudged_share == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
    assert a.returned_documents == 6
    compared = found.comparison("a", "RR@10")
    assert compared is not None
    assert compared.unjudged is not None
    assert compared.unjudged.judged_only == pytest.approx(-0.5 / 3)
    # Rank 1 of a: d2 is judged, with grade 0; so d8 and d5 gain nothing.
    assert a.filled == (0.5, 0.5, 0.5)
    assert compared.unjudged.candidate_share == a.unjudged_share


def test_a_sign_that_turns_over_judged_documents_is_shown_beside_no_answer(root: Path) -> None:
    systems = "{b: {runs: [b]}, a: {runs: [a]}}"
    text = f"dataset: tiny\nmeasures: [P@1]\nbaseline: b\nsystems: {systems}\n"
    (root / EXPERIMENT).write_text(text, encoding="utf-8")
    run_a = "".join(f"{q} Q0 x 1 9 a\n{q} Q0 {d} 2 8 a\n" for q, d in (("q1", "d1"), ("q4", "d4")))
    (root / "datasets/tiny/a.trec").write_text(run_a, encoding="utf-8")
    run_b = "q1 Q0 d1 1 9 b\nq1 Q0 d2 2 8 b\nq4 Q0 d9 1 9 b\n"
    (root / "datasets/tiny/b.trec").write_text(run_b, encoding="utf-8")
    found = collection(root, query_type="local").comparison("a", "P@1")
    assert found is not None
    assert found.difference == pytest.approx(-0.5)  # a: 0 and 0, b: 1 and 0
    assert found.unjudged is not None
    assert found.unjudged.judged_only == pytest.approx(0.5)  # a: 1 and 1, b: 1 and 0
    assert found.answer == "not shown"
