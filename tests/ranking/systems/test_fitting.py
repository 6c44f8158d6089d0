"""Trained fusions are fitted before anything is evaluated, and never score in-sample."""

from typing import Any

import numpy as np
import pytest

from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.explanation import explain_ranking
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import CrossFitted, Trainable
from fusion_bench.ranking.final_lists import align_all_queries, make_final_lists, rank_queries
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting
from fusion_bench.ranking.system_scores import ShardLimits, evaluate_systems
from tests.methods.fuse.trained_cases import make_judgments, make_lists, make_runs

LISTS, JUDGMENTS = make_lists(3), make_judgments(3)
TYPES = {query: "local" if int(query[1:]) % 2 else "hybrid" for query in JUDGMENTS}
MEASURE = parse_measure("nDCG@10")


def system(**options: Any) -> System:  # noqa: ANN401 - as in YAML
    data = {"name": "s", "runs": ("a", "b", "c"), "fusion": {"method": "pos_fuse", "folds": 3}}
    return System.model_validate(data | options)


def test_every_way_of_ranking_agrees_with_the_fitted_fusion() -> None:
    runs = make_runs(LISTS, JUDGMENTS)
    fitted = fit_system(system(depth=5), runs)
    assert isinstance(fitted.fusion, CrossFitted)
    assert fit_system(fitted, runs) is fitted
    expected = {}
    for _, ranking in rank_queries(fitted, runs):
        view = ranking.runs
        for query, document, score in zip(
            view.query_index, view.documents, fitted.fusion.fuse(view), strict=True
        ):
            expected[view.queries[query], view.vocabulary[document]] = float(score)
    lists = make_final_lists(system(depth=5), runs)
    rows = zip(lists.query_ids, lists.document_ids, lists.scores.tolist(), strict=True)
    assert {(query, document): score for query, document, score in rows} == expected
    for query in runs.queries:
        for trace in explain_ranking(system(depth=5), runs, query).traces:
            assert trace.score == trace.recomputed_score == expected[query, trace.document]


def test_shards_and_the_batch_engine_change_no_value() -> None:
    runs = make_runs(LISTS, JUDGMENTS)
    [whole] = evaluate_systems([system()], runs, [MEASURE])
    [sharded] = evaluate_systems(
        [system()], runs, [MEASURE], limits=ShardLimits(candidates=20), threads=2
    )
    assessed = assess_system(system(), runs, [MEASURE])
    assert whole.evaluation_path == "counted"
    np.testing.assert_array_equal(whole.values, sharded.values)
    np.testing.assert_array_equal(whole.values, assessed.values)


def test_a_fusion_of_a_type_learns_from_queries_of_that_type() -> None:
    runs = make_runs(LISTS, JUDGMENTS, types=TYPES)
    trained = {"fusion": {"method": "pos_fuse"}}
    typed = system(fusion="rrf", by_query_type={"local": trained, "hybrid": {"fusion": "rrf"}})
    assert needs_fitting(typed)
    fitted = fit_system(typed, runs)
    assert fitted.by_query_type is not None
    local = fitted.by_query_type["local"].fusion
    assert isinstance(local, CrossFitted)
    is_local = np.array([name == "local" for name in runs.types])
    assert set(local.fold_of_query) == set(np.array(runs.queries)[is_local])
    [scores] = evaluate_systems([typed], runs, [MEASURE])
    part = runs.subset(is_local)
    alone = evaluate_systems([system(fusion={"method": "pos_fuse"})], part, [MEASURE])[0]
    np.testing.assert_array_equal(scores.values[:, is_local], alone.values)


def test_a_type_with_one_query_says_that_nothing_can_be_learned() -> None:
    runs = make_runs(LISTS, JUDGMENTS, types={"q00": "local"})
    trained = {"fusion": {"method": "pos_fuse"}}
    typed = system(fusion="rrf", by_query_type={"local": trained, "hybrid": {"fusion": "rrf"}})
    with pytest.raises(AlignmentError, match=r"^system.*'s':.*'local':.*pos_fuse.*1$"):
        evaluate_systems([typed], runs, [MEASURE])


def test_lists_without_judgments_are_refused() -> None:
    runs = [Run.from_dict(name, lists) for name, lists in LISTS.items()]
    with pytest.raises(AlignmentError, match=r"^system 's': pos_fuse"):
        make_final_lists(system(), align_all_queries(runs))


def test_the_configuration_stays_the_users() -> None:
    given = system()
    fit_system(given, make_runs(LISTS, JUDGMENTS))
    assert isinstance(given.fusion, Trainable)
    assert given.resolved_config["fusion"] == {"method": "pos_fuse", "folds": 3, "fold_seed": 0}
