"""Equal blended scores keep the fused order on every path; only what that ties is tied."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fusion_bench import Pipeline, Query
from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.ordering import IntArray, score_keys
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.explanation import explain_ranking
from fusion_bench.experiment.system import System
from fusion_bench.measures import compute_measures, parse_measure, tie_sensitivity
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.ranking.batch_engine import BatchResult, evaluate_batch
from fusion_bench.ranking.final_lists import align_all_queries, make_final_lists
from fusion_bench.ranking.system_ranking import (
    SystemRanking,
    rank_candidates,
    ranked_lists,
    system_spec,
)
from tests.examples import examples
from tests.ranking.test_blended_systems import reranked, systems
from tests.ranking.test_fused_systems import MEASURES

EXAMPLES = settings(max_examples=examples(30))
RUNS = [
    Run.from_dict(name, {"q1": {"d1": 9.0, "d2": 8.0, "d3": 7.0}}) for name in ("bm25", "dense")
]


def reorder(
    scores: dict[str, float], space: ScoreSpace = "unit", ties: Ties = "trec", **keys: object
) -> list[str]:
    """The final list of ``d1, d2, d3``, which is the fused one, with these rerank scores."""
    runs = align_all_queries(
        RUNS, rerankers=[Run.from_dict("r", {"q1": scores})], spaces={"r": space}, ties=ties
    )
    blend = {"method": "replace", "reranker": "r", **keys}
    system = System.model_validate({"name": "s", "runs": ["bm25", "dense"], "blend": blend})
    view, lists = ranked_lists(system, runs)
    plain = rank_candidates(system, runs)
    np.testing.assert_array_equal(lists.positions, plain.ranks_before_cut)
    np.testing.assert_array_equal(lists.tie_starts, plain.tie_starts)
    ids = [view.vocabulary[code] for code in view.documents]
    return [ids[row] for row in np.argsort(lists.positions)[(lists.positions == 0).sum() :]]


@pytest.mark.parametrize("ties", ["trec", "first_seen"])
@pytest.mark.parametrize("space", ["unit", "logit", "unbounded"])
def test_a_reranker_that_gives_one_score_changes_nothing(space: ScoreSpace, ties: Ties) -> None:
    assert reorder({"d3": 1.0, "d2": 1.0, "d1": 1.0}, space, ties) == ["d1", "d2", "d3"]


def test_only_equal_scores_keep_the_fused_order() -> None:
    assert reorder({"d1": 0.2, "d2": 0.7, "d3": 0.7}) == ["d2", "d3", "d1"]
    assert reorder({"d1": 0.2, "d2": 0.2, "d3": 0.7}) == ["d3", "d1", "d2"]
    nearly = {"d1": 0.7, "d2": 0.7 + 1e-14, "d3": 0.2}  # equal to twelve digits
    assert reorder(nearly) == ["d1", "d2", "d3"]


def test_equal_scores_with_a_depth_and_without_a_score() -> None:
    assert reorder({"d1": 0.0, "d3": 0.0}, missing="zero") == ["d1", "d2", "d3"]
    assert reorder({"d2": 0.0, "d3": 0.0}, missing="below") == ["d2", "d3", "d1"]
    assert reorder({"d1": 0.5, "d2": 0.5, "d3": 0.5}, depth=2) == ["d1", "d2", "d3"]
    assert reorder({"d1": 0.5, "d2": 0.5}, depth=2, tail="drop") == ["d1", "d2"]
    kept = reorder({"d1": 0.5, "d2": 0.1, "d3": 0.5}, min_score=0.2)
    assert kept == ["d1", "d3"]


def test_a_list_of_which_only_the_order_counts_is_ordered_as_it_was_read() -> None:
    """Its own ties go by the tie rule of a single list, so that no two documents are equal."""
    assert reorder({"d1": 1.0, "d2": 1.0, "d3": 1.0}, "order") == ["d3", "d2", "d1"]


@st.composite
def with_equal_scores(draw: st.DrawFn, values: tuple[float, ...]) -> AlignedRuns:
    """A view whose rerank lists have a score of few for every document, as it stands."""
    runs = draw(reranked())
    score = st.sampled_from(values)
    size = len(runs.documents)
    rerank = np.array([draw(st.lists(score, min_size=size, max_size=size)) for _ in range(2)])
    spaces: dict[str, ScoreSpace] = dict.fromkeys(runs.rerankers, "unit")
    return replace(runs, rerank=rerank.reshape(2, size), spaces=spaces)


def no_blend(system: System) -> System:
    return system.model_copy(update={"blend": NoBlend(), "top_k": None, "min_relevance": None})


RETRIEVAL = ("fused", "fused_max_possible", "fused_min_max", "reciprocal_rank")


@EXAMPLES
@given(st.data())
def test_a_constant_reranker_leaves_the_fused_list_as_it_was(data: st.DataObject) -> None:
    runs = data.draw(with_equal_scores((data.draw(st.sampled_from([0.0, 0.3, 1.0])),)))
    blend = {
        "method": data.draw(st.sampled_from(["replace", "linear"])),
        "reranker": "full",
        "depth": data.draw(st.integers(1, 9)),
    }
    if blend["method"] == "linear":
        blend |= {
            "beta": data.draw(st.floats(0, 1)),
            "retrieval": data.draw(st.sampled_from(RETRIEVAL)),
        }
    fused = no_blend(data.draw(systems(runs)))
    keys = fused.model_dump() | {"blend": blend}
    system = fused.model_copy(
        update={"blend": System.model_validate(keys | {"fusion": "rrf"}).blend}
    )
    with assume_supported():
        blended = rank_candidates(system, runs)
    expected = rank_candidates(fused, runs)
    np.testing.assert_array_equal(blended.positions, expected.positions)
    np.testing.assert_array_equal(ranked_lists(system, runs)[1].positions, expected.positions)
    whole = (np.diff(blended.runs.offsets) <= blend["depth"])[blended.runs.query_index]
    if blend["method"] == "replace":
        np.testing.assert_array_equal(blended.tie_starts[whole], expected.tie_starts[whole])


@pytest.mark.parametrize("depth", [2, 3])
def test_min_max_does_not_stretch_what_equal_fused_scores_differ_by(depth: int) -> None:
    dense = Run.from_dict("dense", {"q1": {"a": 0.5, "b": 1.0, "c": 0.0}})
    constant = Run.from_dict("r", {"q1": dict.fromkeys("abc", 0.0)})
    bm25 = Run.from_dict("bm25", {"q1": {"c": 0.0}})
    runs = align_all_queries([bm25, dense], rerankers=[constant], spaces={"r": "unit"})
    fusion = {"method": "weighted_score", "weights": {"bm25": 1.0, "dense": 1e-14}}
    fusion |= {"normalize": "min_max", "missing": "min"}
    blend = {"method": "linear", "reranker": "r", "beta": 0, "depth": depth}
    keys = {"name": "s", "runs": ["bm25", "dense"], "fusion": fusion}
    system = System.model_validate(keys | {"blend": blend | {"retrieval": "fused_min_max"}})
    expected = rank_candidates(no_blend(system), runs).positions
    np.testing.assert_array_equal(rank_candidates(system, runs).positions, expected)
    np.testing.assert_array_equal(ranked_lists(system, runs)[1].positions, expected)


@contextmanager
def assume_supported() -> Iterator[None]:
    """Leave out what is refused: a greatest possible score that is not above 0."""
    try:
        yield
    except (AlignmentError, ConfigError):
        assume(False)


@EXAMPLES
@given(st.data())
def test_the_engine_and_the_plain_path_agree(data: st.DataObject) -> None:
    runs = data.draw(with_equal_scores((0.25, 0.5)))
    system = data.draw(systems(runs))
    with assume_supported():
        ranking = rank_candidates(system, runs)
    expected = compute_measures(MEASURES, ranking.runs, ranking.positions)
    [result] = evaluate_batch([system_spec(system)], system.active_runs(runs), MEASURES)
    if isinstance(result, BatchResult):
        counted = ~result.unresolved
        np.testing.assert_array_equal(result.values[:, counted], expected[:, counted])
    view, lists = ranked_lists(system, runs)
    assert view is ranking.runs
    np.testing.assert_array_equal(lists.positions, ranking.ranks_before_cut)
    np.testing.assert_array_equal(lists.tie_starts, ranking.tie_starts)


@EXAMPLES
@given(st.data())
def test_neighbors_of_equal_scores_stand_as_they_were_fused(data: st.DataObject) -> None:
    runs = data.draw(with_equal_scores((0.25, 0.5)))
    system = data.draw(systems(runs))
    with assume_supported():
        ranking = rank_candidates(system, runs)
    rows = ranking.list_rows()
    above, below = rows[:-1], rows[1:]
    keys, query = score_keys(ranking.sort_scores), ranking.runs.query_index
    is_tied = (query[above] == query[below]) & (ranking.tiers[above] == ranking.tiers[below])
    is_tied &= keys[above] == keys[below]
    fused = ranking.fused.positions
    assert (fused[above] < fused[below])[is_tied].all()


def orders(ranking: SystemRanking, query: int) -> Iterator[IntArray]:
    """Positions of every order of the documents that no score of the system tells apart."""
    keys, fused = score_keys(ranking.sort_scores), score_keys(ranking.fused.sort_scores)
    placed = [n for n in ranking.list_rows() if ranking.runs.query_index[n] == query]
    groups: dict[object, list[int]] = {}
    for n in placed:
        groups.setdefault((int(ranking.tiers[n]), keys[n], fused[n]), []).append(int(n))
    for chosen in product(*(permutations(group) for group in groups.values())):
        positions = ranking.positions.copy()
        for group, order in zip(groups.values(), chosen, strict=True):
            positions[list(order)] = ranking.positions[group]
        yield positions


@EXAMPLES
@given(st.data())
def test_tie_statistics_are_those_of_all_orders(data: st.DataObject) -> None:
    runs = data.draw(with_equal_scores((0.25, 0.5)))
    system = data.draw(systems(runs)).model_copy(update={"top_k": None})
    with assume_supported():
        ranking = rank_candidates(system, runs)
    view, lists = ranked_lists(system, runs)
    measures = [parse_measure(name) for name in ("nDCG@3", "RR@2", "AP@100")]
    ties = tie_sensitivity(measures, view, lists.positions, lists.tie_starts, limit=None)
    for query in range(len(view.queries)):
        tables = [*islice(orders(ranking, query), 5_041)]
        assume(len(tables) <= 5_040)
        values = [compute_measures(measures, view, each)[:, query] for each in tables]
        np.testing.assert_allclose(ties.minimum[:, query], np.min(values, axis=0), atol=1e-12)
        np.testing.assert_allclose(ties.maximum[:, query], np.max(values, axis=0), atol=1e-12)
        np.testing.assert_allclose(ties.expected[:, query], np.mean(values, axis=0), atol=1e-12)


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, -0.5]), min_size=5, max_size=5),
    st.sampled_from(["trec", "first_seen"]),
    st.sampled_from(["replace", "linear", "position_aware"]),
)
@EXAMPLES
def test_live_explain_and_written_lists_have_this_order(
    rerank: list[float], ties: Ties, method: str
) -> None:
    lists = {
        "bm25": {"b": 9.0, "a": 8.0, "e": 7.0, "c": 7.0},
        "dense": {"a": 0.9, "b": 0.8, "d": 0.7, "c": 0.6},
    }
    scores = dict(zip("abcde", rerank, strict=True))
    blend = {"method": method, "reranker": "r"}
    system = System.model_validate({"name": "s", "runs": [*lists], "blend": blend})
    sources = [Run.from_dict(name, {"q": given}) for name, given in lists.items()]
    reranker = Run.from_dict("r", {"q": scores})
    runs = align_all_queries(sources, rerankers=[reranker], spaces={"r": "unbounded"}, ties=ties)
    written = make_final_lists(system, runs)
    expected = written.document_ids
    assert [trace.document for trace in explain_ranking(system, runs, "q").traces] == expected
    assert [*written.to_run().to_dict()["q"]] == expected
    as_float32 = {d: float(np.float32(x)) for d, x in written.to_run().to_dict()["q"].items()}
    again = Run.from_dict("again", {"q": dict(sorted(as_float32.items()))})
    assert [*again.to_dict()["q"]] == expected, "trec_eval finds another order"
    pipeline = Pipeline(system, ties=ties, score_spaces={"r": "unbounded"})
    given_lists = {name: [*scored.items()] for name, scored in {**lists, "r": scores}.items()}
    with pipeline:
        found = pipeline.search_sync(Query("q", "text"), given_lists)
    assert [document.id for document in found.documents] == expected
