"""Chunks collapsed to documents: the fast path gives the slow obvious loop's lists and values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.collapse import add_system_parents, list_chunks
from fusion_bench.ranking.final_lists import make_final_lists
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import rank_candidates, ranked_lists
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.examples import examples
from tests.oracle import ranking as oracle
from tests.oracle.test_oracle import DOCUMENTS, EXAMPLES, FEW, QUERIES, Case, as_run, cases, exact

#: ``d1`` is the id of a chunk, too.
PARENTS = ("A", "d1", "é2", "z")
MEASURES = [parse_measure(name) for name in ("nDCG@3", "nDCG", "RR", "AP", "R@2")]


@st.composite
def collapses(draw: DrawFn, place: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"by": "parent", "place": place}
    if draw(st.booleans()):
        return {**rule, "keep": draw(st.integers(1, 3))}
    rule["score"] = draw(st.sampled_from(["max", "sum", "first", "rrf"]))
    return rule | ({"k": draw(st.sampled_from([0.0, 1.0, 60.0]))} if rule["score"] == "rrf" else {})


PARENT_OF = st.fixed_dictionaries({name: st.sampled_from(PARENTS) for name in DOCUMENTS})
GRADES = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from([*PARENTS, *DOCUMENTS]), st.integers(0, 3), max_size=6),
)


def collapse_list(
    ranked: oracle.List, rule: Mapping[str, Any], parent_of: Mapping[str, str]
) -> oracle.List:
    """One list, one chunk at a time."""
    groups: dict[str, list[str]] = {}
    for chunk in sorted(ranked, key=lambda d: ranked[d].rank):
        groups.setdefault(parent_of[chunk], []).append(chunk)
    if "keep" in rule:
        kept = [c for chunks in groups.values() for c in chunks[: rule["keep"]]]
        kept.sort(key=lambda d: ranked[d].rank)
        return {c: oracle.Entry(i, ranked[c].score) for i, c in enumerate(kept, 1)}

    def score(chunks: Sequence[str]) -> float:
        values = [ranked[c].score for c in chunks]
        if rule["score"] == "sum" and min(ranked[c].score for c in ranked) < 0:
            raise oracle.RefusedError("a negative score is summed up")
        return {
            "max": lambda: max(values),
            "sum": lambda: math.fsum(values),
            "first": lambda: values[0],
            "rrf": lambda: math.fsum(1 / (rule.get("k", 60) + ranked[c].rank) for c in chunks),
        }[rule["score"]]()

    scores = {parent: score(chunks) for parent, chunks in groups.items()}  # by best rank
    order = sorted(scores, key=lambda parent: -oracle.key(scores[parent]))
    return {parent: oracle.Entry(i, scores[parent]) for i, parent in enumerate(order, 1)}


def best_chunks(
    lists: Sequence[oracle.List], parent_of: Mapping[str, str], ties: str
) -> dict[str, str]:
    """Parent → its chunk with the best rank in any list."""
    seen = oracle.first_seen(lists)
    order = seen if ties == "first_seen" else sorted(seen, key=str.encode, reverse=True)
    order.sort(key=lambda c: min(ranked[c].rank for ranked in lists if c in ranked))
    best: dict[str, str] = {}
    for chunk in order:
        best.setdefault(parent_of[chunk], chunk)
    return best


def slow(
    case: Case, rule: Mapping[str, Any], parent_of: Mapping[str, str], query: str
) -> tuple[list[tuple[str, float]], dict[str, str]]:
    """The list of a query, and the chunk that stands for each document."""
    sources = [
        oracle.Source(name, case.roles[name], oracle.read(rows)) for name, rows in case.rows.items()
    ]
    rerank = oracle.read(case.reranks).get(query, {})
    system = dict(case.system)

    def rank(
        system: Mapping[str, Any], sources: Sequence[oracle.Source], rerank: oracle.List
    ) -> list[tuple[str, float]]:
        return oracle.rank(system, sources, query, rerank=rerank, space=case.space, ties=case.ties)

    def of_parents(best: Mapping[str, str]) -> oracle.List:
        if "keep" in rule:
            return rerank
        return {p: rerank[chunk] for p, chunk in best.items() if chunk in rerank}

    if rule["place"] == "each list":
        oracle.check_sources(sources, system["fusion"])
        weights = oracle.weights_of(sources, system["fusion"])
        active = [s.lists.get(query, {}) for s, w in zip(sources, weights, strict=True) if w > 0]
        merged = [
            replace(s, lists={query: collapse_list(s.lists.get(query, {}), rule, parent_of)})
            for s in sources
        ]
        best = best_chunks(active, parent_of, case.ties)
        return rank(system, merged, of_parents(best)), best
    inner = {key: value for key, value in system.items() if key != "top_k"}
    if rule["place"] == "fused":
        inner = {key: system[key] for key in ("fusion", "depth") if key in system}
    listed = {d: oracle.Entry(i, x) for i, (d, x) in enumerate(rank(inner, sources, rerank), 1)}
    if is_lowered(case, rule):  # the scores that the order goes by fall along the ranks
        listed = {d: oracle.Entry(e.rank, -float(e.rank)) for d, e in listed.items()}
    collapsed = collapse_list(listed, rule, parent_of)
    alone = oracle.Source("list", frozenset(), {query: collapsed})
    outer = {"fusion": {"method": "weighted_score"}, "top_k": system.get("top_k")}
    if rule["place"] == "fused":
        outer |= {key: system[key] for key in ("blend", "min_relevance") if key in system}
    best = best_chunks([listed], parent_of, "first_seen")
    scores = of_parents(best)
    ranked = oracle.rank(outer, [alone], query, rerank=scores, space=case.space, ties="first_seen")
    return ranked, best


def aligned(
    case: Case, grades: Mapping[str, Mapping[str, int]], parent_of: Mapping[str, str]
) -> AlignedRuns:
    judged = {query: {"other": 0, **grades.get(query, {})} for query in QUERIES}
    runs = align(
        Qrels.from_dict(judged),
        [as_run(name, rows, case.roles[name]) for name, rows in case.rows.items()],
        rerankers=[as_run("r", case.reranks)],
        ties="trec" if case.ties == "trec" else "first_seen",
        spaces={"r": case.space},  # type: ignore[dict-item]
    )
    rule = System("s", ["x"], collapse={"by": "parent", "keep": 1})
    return add_system_parents(replace(runs, find_parents=lambda *_: dict(parent_of)), [rule])


def fast(
    system: System, runs: AlignedRuns
) -> tuple[dict[str, list[tuple[str, float]]], dict[tuple[str, str], str]]:
    """Each query's list, and the chunk that stands for each of its documents."""
    lists: dict[str, list[tuple[str, float]]] = {query: [] for query in QUERIES}
    best: dict[tuple[str, str], str] = {}
    for index, plain, part in plain_systems(system, runs):
        ranking = rank_candidates(plain, part)
        view, found = ranked_lists(plain, part)
        assert view is ranking.runs
        np.testing.assert_array_equal(found.positions, ranking.ranks_before_cut)
        for row in ranking.list_rows():
            query = runs.queries[index[view.query_index[row]]]
            document = runs.vocabulary[view.documents[row]]
            lists[query].append((document, float(ranking.scores[row])))
            if (chunks := ranking.runs.chunks) is not None:
                best[query, document] = runs.vocabulary[chunks[row]]
                [first, *_] = list_chunks(part, query)[document]
                assert first.id == best[query, document]
    return lists, best


def assert_same(
    case: Case,
    rule: Mapping[str, Any],
    parent_of: Mapping[str, str],
    grades: Mapping[str, Mapping[str, int]],
) -> None:
    runs = aligned(case, grades, parent_of)
    system = System.model_validate(
        {"name": "s", "runs": tuple(case.rows), "collapse": rule, **case.system}
    )
    try:
        expected = {query: slow(case, rule, parent_of, query) for query in QUERIES}
    except oracle.RefusedError:
        with pytest.raises(FusionBenchError):
            fast(system, runs)
        return
    found, chunks = fast(system, runs)
    for query, (ranked, best) in expected.items():
        assert [d for d, _ in found[query]] == [d for d, _ in ranked]
        if "score" in rule:
            assert [chunks[query, d] for d, _ in ranked] == [best[d] for d, _ in ranked]
        pairs = zip(found[query], ranked, strict=True)
        if not is_lowered(case, rule):
            tolerance = 0.0 if exact(case) else 1e-12
            assert all(math.isclose(x, y, rel_tol=tolerance) for (_, x), (_, y) in pairs)
    check_values(system, runs, {query: ranked for query, (ranked, _) in expected.items()})


def is_lowered(case: Case, rule: Mapping[str, Any]) -> bool:
    """Whether scores of a blended list are lowered, so that they fall along its ranks."""
    return rule["place"] == "reranked" and "blend" in case.system


def check_values(
    system: System, runs: AlignedRuns, lists: Mapping[str, Sequence[tuple[str, float]]]
) -> None:
    """The values are those of the lists as a plain system's own list of documents."""
    [scores] = evaluate_systems([system], runs, MEASURES)
    assert (scores.values <= 1).all()
    assert runs.qrels is not None
    rows = [(q, d, -i, i) for q, ranked in lists.items() for i, (d, _) in enumerate(ranked)]
    if rows:
        written = align(runs.qrels, [as_run("s", rows)])
        [same] = evaluate_systems([System("s", ["s"])], written, MEASURES)
        np.testing.assert_array_equal(scores.values, same.values)
    final = make_final_lists(system, runs)
    pairs = zip(final.query_ids, final.document_ids, strict=True)
    assert sorted(pairs) == sorted((q, d) for q, ranked in lists.items() for d, _ in ranked)


def settle(case: Case, rule: Mapping[str, Any]) -> None:
    """Leave out what has no meaning: see ``System``."""
    fusion, blend = case.system["fusion"], case.system.get("blend", {})
    assume(fusion.get("normalize") != "three_lists")
    if rule["place"] == "fused":
        assume(blend.get("retrieval") != "fused_max_possible")
    if is_lowered(case, rule):
        assume(rule.get("score") != "sum")


def run_property(place: str, case: st.SearchStrategy[Case], count: int) -> None:
    @settings(EXAMPLES, max_examples=examples(count))
    @given(case, collapses(place), PARENT_OF, GRADES)
    def same(
        case: Case,
        rule: Mapping[str, Any],
        parent_of: Mapping[str, str],
        grades: Mapping[str, Mapping[str, int]],
    ) -> None:
        settle(case, rule)
        assert_same(case, rule, parent_of, grades)

    same()


PLACES = ("each list", "fused", "reranked")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fusion", ["rrf", "rrf_v2", "weighted_score", "comb_sum"])
def test_fusions(place: str, fusion: str) -> None:
    run_property(place, cases(fusion=fusion, scores=FEW), 12)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("blend", ["replace", "linear", "position_aware"])
def test_blends(place: str, blend: str) -> None:
    run_property(place, cases(fusion="rrf", blend=blend, scores=FEW), 15)


@pytest.mark.parametrize("place", PLACES)
def test_scores_of_both_signs(place: str) -> None:
    run_property(place, cases(fusion="weighted_score"), 15)


@pytest.mark.parametrize("place", ["each list", "fused"])
def test_a_document_has_the_rerank_score_of_its_best_chunk(place: str) -> None:
    rows = [("q1", "d1", 3.0, 0), ("q1", "d9", 2.0, 1)]
    reranks = [("q1", "d1", 0.25, 0), ("q1", "d9", 0.75, 1)]
    case = Case({"bm25": rows}, {"bm25": frozenset()}, reranks, "unit", {}, "trec")
    runs = aligned(case, {}, dict.fromkeys(DOCUMENTS, "A"))
    rule = {"by": "parent", "score": "max", "place": place}
    system = System("s", ["bm25"], blend={"method": "replace", "reranker": "r"}, collapse=rule)
    assert fast(system, runs)[0]["q1"] == [("A", 0.25)]
