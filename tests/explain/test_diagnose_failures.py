"""Failures by hand, and the fast counting against the obvious loop over traces."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.evaluation.details.relevant_ranks import RelevantDocuments, list_relevant
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import ScoreTrace, explain_ranking
from fusion_bench.explain.failures import (
    FUSED_TOP,
    TOP,
    FailureKind,
    Failures,
    find_failures,
    rank_stages,
)

ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "title": frozenset({"question", "keyword"}),
}
SPACES: dict[str, ScoreSpace] = {"r": "unit"}
#: Query and document → documents above: relevant, not relevant, unjudged; whether it is tied.
Found = dict[tuple[str, str], tuple[int, int, int, bool]]


def diagnose(
    runs: AlignedRuns, qrels: Qrels, system: System, rel: int = 1
) -> tuple[RelevantDocuments, dict[FailureKind, Failures]]:
    relevant = list_relevant(runs, qrels, rel)
    return relevant, find_failures(runs, relevant, rank_stages(system, runs), rel)


def listed(runs: AlignedRuns, relevant: RelevantDocuments, failures: Failures) -> Found:
    """The failures of one kind."""
    return {
        (runs.queries[relevant.query[m]], relevant.documents[m]): (
            int(failures.relevant_above[m]),
            int(failures.not_relevant_above[m]),
            int(failures.unjudged_above[m]),
            bool(failures.is_tied[m]),
        )
        for m in np.flatnonzero(failures.is_failed).tolist()
    }


def align_one(
    lists: dict[str, dict[str, float]],
    grades: dict[str, int],
    rerank: dict[str, float] | None = None,
) -> tuple[AlignedRuns, Qrels]:
    qrels = Qrels.from_dict({"q": grades})
    sources = [Run.from_dict(n, {"q": scores}, roles=ROLES[n]) for n, scores in lists.items()]
    rerankers = [Run.from_dict("r", {"q": rerank})] if rerank else []
    return align(qrels, sources, rerankers=rerankers, spaces=SPACES), qrels


def find(
    lists: dict[str, dict[str, float]],
    grades: dict[str, int],
    *,
    rerank: dict[str, float] | None = None,
    rel: int = 1,
    **options: object,
) -> dict[FailureKind, Found]:
    runs, qrels = align_one(lists, grades, rerank)
    system = System.model_validate({"name": "s", "runs": list(lists), **options})
    relevant, failures = diagnose(runs, qrels, system, rel)
    return {kind: listed(runs, relevant, failures[kind]) for kind in failures}


def test_a_dilution_is_first_for_the_question_and_not_first_in_the_fused_list() -> None:
    lists = {"dense": {"a": 3.0, "b": 2.0}, "bm25": {"b": 3.0, "c": 2.0}}
    grades = {"a": 1, "b": 0}
    assert find(lists, grades)["dilution"] == {("q", "a"): (0, 1, 0, False)}
    assert find(lists, {"a": 1})["dilution"] == {("q", "a"): (0, 0, 1, False)}
    assert find(lists, {"a": 1, "b": 2})["dilution"] == {("q", "a"): (1, 0, 0, False)}
    assert find(lists, {"a": 1, "b": 2}, rel=2)["dilution"] == {}
    weights = {"method": "rrf", "weights": {"question": 100}}
    assert find(lists, grades, fusion=weights)["dilution"] == {}


def test_without_a_list_of_role_question_nothing_is_diluted() -> None:
    lists = {"dense": {"a": 3.0, "b": 2.0}, "bm25": {"b": 3.0, "c": 2.0}}
    unweighted = {"method": "rrf", "weights": {"dense": 0}}
    assert find(lists, {"a": 1}, fusion=unweighted)["dilution"] == {}
    assert find({"bm25": {"b": 3.0, "a": 2.0}}, {"a": 1})["dilution"] == {}


def test_two_lists_of_role_question_do_not_dilute_each_other() -> None:
    lists = {"dense": {"a": 3.0, "b": 2.0}, "title": {"b": 3.0, "c": 2.0}}
    assert find(lists, {"a": 1})["dilution"] == {}
    lists["bm25"] = {"c": 9.0}
    assert find(lists, {"a": 1})["dilution"] == {("q", "a"): (0, 0, 2, False)}


def test_a_dilution_by_a_tie_is_one_and_is_marked() -> None:
    lists = {"dense": {"a": 3.0}, "bm25": {"b": 3.0}}  # equal scores: the greater id is first
    assert find(lists, {"a": 1})["dilution"] == {("q", "a"): (0, 0, 1, True)}
    assert find(lists, {"b": 1})["dilution"] == {}


MANY = {f"d{i:02}": 20.0 - i for i in range(15)}
SCORES = {name: i / 20 for i, name in enumerate(MANY)}  # the reverse of the fused order
REPLACE = {"method": "replace", "reranker": "r"}


def test_a_burial_falls_from_the_fused_top_3_below_the_top_10() -> None:
    grades = {"d02": 1, "d03": 1, "d12": 1, "d13": 0}
    found = find({"dense": MANY}, grades, rerank=SCORES, blend=REPLACE)
    assert found["burial"] == {("q", "d02"): (2, 1, 9, False)}
    raised = SCORES | {"d02": 0.21}  # above d00 to d04, so tenth
    assert find({"dense": MANY}, grades, rerank=raised, blend=REPLACE)["burial"] != {}
    raised = SCORES | {"d02": 0.26}
    assert find({"dense": MANY}, grades, rerank=raised, blend=REPLACE)["burial"] == {}


@pytest.mark.parametrize(
    "options",
    [
        {"blend": REPLACE | {"min_score": 0.6}},
        {"blend": REPLACE | {"depth": 1, "tail": "drop"}},
        {"blend": REPLACE, "min_relevance": 0.6},
    ],
)
def test_what_the_blend_drops_is_buried(options: dict[str, Any]) -> None:
    found = find({"dense": MANY}, {"d01": 1}, rerank=SCORES, **options)
    assert list(found["burial"]) == [("q", "d01")]


def test_what_top_k_alone_cuts_is_not_buried() -> None:
    scores = SCORES | {"d01": 0.3}
    found = find({"dense": MANY}, {"d01": 1}, rerank=scores, blend=REPLACE, top_k=2)
    assert found["burial"] == {}


def test_without_a_reranker_nothing_is_buried() -> None:
    assert find({"dense": MANY}, {"d01": 1}, rerank=SCORES, min_relevance=0.5)["burial"] == {}
    skipped = REPLACE | {"always_rerank": False, "skip_limit": 15}
    found = find({"dense": MANY}, {"d01": 1}, rerank=SCORES, blend=skipped, min_relevance=0.5)
    assert found["burial"] == {}


def test_a_burial_by_a_tie_is_one_and_is_marked() -> None:
    scores = dict.fromkeys(MANY, 0.5)
    found = find({"dense": MANY}, {"d01": 1}, rerank=scores, blend=REPLACE)
    assert found["burial"] == {("q", "d01"): (0, 0, 13, True)}


def test_a_miss_is_in_no_list_that_the_system_reads() -> None:
    lists = {"dense": {"a": 3.0, "b": 2.0}, "bm25": {"c": 3.0}}
    grades = {"a": 1, "b": 1, "c": 1, "z": 1, "y": 0}
    assert list(find(lists, grades)["miss"]) == [("q", "z")]
    assert list(find(lists, grades, depth=1)["miss"]) == [("q", "b"), ("q", "z")]
    unweighted = {"method": "rrf", "weights": {"bm25": 0}}
    assert list(find(lists, grades, fusion=unweighted)["miss"]) == [("q", "c"), ("q", "z")]
    assert list(find(lists, grades, top_k=1)["miss"]) == [("q", "z")]


def test_an_inversion_is_below_what_is_judged_not_relevant_within_the_top_10() -> None:
    grades = {"d00": 1, "d01": 0, "d02": 1, "d04": 1, "d10": 1}
    assert find({"dense": MANY}, grades)["inversion"] == {
        ("q", "d02"): (1, 1, 0, False),
        ("q", "d04"): (2, 1, 1, False),
    }
    assert find({"dense": MANY}, grades, rel=2)["inversion"] == {}
    assert list(find({"dense": MANY}, grades, top_k=3)["inversion"]) == [("q", "d02")]
    assert find({"dense": MANY}, {"d04": 1})["inversion"] == {}


def test_a_grade_below_the_relevant_one_is_judged_not_relevant() -> None:
    found = find({"dense": MANY}, {"d00": 1, "d01": 2}, rel=2)
    assert found["inversion"] == {("q", "d01"): (0, 1, 0, False)}


def test_an_inversion_by_a_tie_is_one_and_is_marked() -> None:
    found = find({"dense": {"a": 1.0}, "bm25": {"b": 1.0}}, {"a": 1, "b": 0})
    assert found["inversion"] == {("q", "a"): (0, 1, 0, True)}


# The obvious slow loop: one query after another, over the traces that `explain` prints.


def search_failures(
    runs: AlignedRuns, qrels: Qrels, system: System, rel: int
) -> dict[FailureKind, Found]:
    found: dict[FailureKind, Found] = {"dilution": {}, "burial": {}, "miss": {}, "inversion": {}}
    for query, grades in qrels.to_dict().items():
        traces = explain_ranking(system, runs, query).traces
        for document, grade in grades.items():
            if grade >= rel:
                search_document(found, query, document, list(traces), system, rel)
    return found


def is_first(trace: ScoreTrace) -> bool:
    return any("question" in term.roles and term.rank == 1 for term in trace.terms)


def tie_start(own: ScoreTrace, traces: list[ScoreTrace]) -> int:
    """The best final rank that another order of ties could give a document."""
    key = f"{own.score:.11e}"
    return min(
        t.rank_before_cut
        for t in traces
        if t.rank_before_cut is not None and t.tier == own.tier and f"{t.score:.11e}" == key
    )


def search_document(
    found: dict[FailureKind, Found],
    query: str,
    document: str,
    traces: list[ScoreTrace],
    system: System,
    rel: int,
) -> None:
    own = next((trace for trace in traces if trace.document == document), None)
    if own is None:
        found["miss"][query, document] = (0, 0, 0, False)
        return

    def above(ranks: dict[str, int], limit: float) -> list[ScoreTrace]:
        return [t for t in traces if t.document in ranks and ranks[t.document] < limit]

    def describe(others: list[ScoreTrace], *, tied: bool) -> tuple[int, int, int, bool]:
        relevant = sum(t.grade is not None and t.grade >= rel for t in others)
        irrelevant = sum(t.grade is not None and t.grade < rel for t in others)
        return relevant, irrelevant, len(others) - relevant - irrelevant, tied

    fused = {t.document: t.fused_rank for t in traces if t.fused_rank is not None}
    if is_first(own):
        others = above(fused, fused[document])
        displacing = [t for t in others if not is_first(t)]
        if displacing:
            tied = {f"{t.fused_score:.11e}" for t in displacing} == {f"{own.fused_score:.11e}"}
            found["dilution"][query, document] = describe(others, tied=tied)
    final = {t.document: t.rank_before_cut for t in traces if t.rank_before_cut is not None}
    place = final.get(document)
    in_fused_top = fused[document] <= FUSED_TOP
    if system.blend.reranker_name and in_fused_top and (place is None or place > TOP):
        tied = place is not None and tie_start(own, traces) <= TOP
        others = above(final, 1e9 if place is None else place)
        found["burial"][query, document] = describe(others, tied=tied)
    if own.rank is not None and own.rank <= TOP:
        others = above(final, own.rank)
        wrong = [t for t in others if t.grade is not None and t.grade < rel]
        if wrong:
            tied = all(final[t.document] >= tie_start(own, traces) for t in wrong)
            found["inversion"][query, document] = describe(others, tied=tied)


DOCUMENTS = [f"d{i:02}" for i in range(16)]
LIST = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 20).map(float), min_size=1)
BLENDS = [
    {"method": "none"},
    REPLACE | {"missing": "below", "depth": 12},
    REPLACE | {"missing": "zero", "depth": 13, "min_score": 0.2},
    REPLACE | {"missing": "below", "depth": 2, "tail": "drop"},
    {
        "method": "position_aware",
        "reranker": "r",
        "retrieval": "reciprocal_rank",
        "missing": "zero",
    },
]
FUSIONS = [
    {"method": "rrf"},
    {"method": "rrf", "weights": {"dense": 0}},
    {"method": "rrf", "weights": {"dense": 0, "title": 0}},
    {"method": "rrf_v2", "weights": {"bm25": 1, "dense": 2, "title": 2}},
]
SYSTEMS = st.fixed_dictionaries(
    {
        "fusion": st.sampled_from(FUSIONS),
        "blend": st.sampled_from(BLENDS),
        "top_k": st.sampled_from([None, 3, 11]),
        "depth": st.sampled_from([None, 5]),
    }
)
GRADES = st.dictionaries(
    st.sampled_from([*DOCUMENTS, "absent"]), st.integers(-1, 2), min_size=1, max_size=12
)


@settings(max_examples=25)
@given(
    lists=st.fixed_dictionaries({name: st.tuples(LIST, LIST) for name in ROLES}),
    grades=st.tuples(GRADES, GRADES),
    rerank=st.tuples(
        *[st.dictionaries(st.sampled_from(DOCUMENTS), st.floats(0, 1), min_size=1)] * 2
    ),
    config=SYSTEMS,
    rel=st.sampled_from([1, 2]),
    ties=st.sampled_from(get_args(Ties)),
)
def test_the_arrays_find_what_the_loop_finds(
    lists: dict[str, tuple[dict[str, float], ...]],
    grades: tuple[dict[str, int], ...],
    rerank: tuple[dict[str, float], ...],
    config: dict[str, Any],
    rel: int,
    ties: Ties,
) -> None:
    names = ("q1", "q2")
    qrels = Qrels.from_dict(dict(zip(names, grades, strict=True)))
    runs = align(
        qrels,
        [
            Run.from_dict(name, dict(zip(names, pair, strict=True)), roles=ROLES[name])
            for name, pair in lists.items()
        ],
        rerankers=[Run.from_dict("r", dict(zip(names, rerank, strict=True)))],
        spaces=SPACES,
        queries={"q1": Query("q1", type="local", confidence=0.9)},
        ties=ties,
    )
    system = System.model_validate({"name": "s", "runs": [*ROLES], **config})
    relevant, failures = diagnose(runs, qrels, system, rel)
    expected = search_failures(runs, qrels, system, rel)
    assert {kind: listed(runs, relevant, failures[kind]) for kind in failures} == expected


def test_weights_by_type_apply_to_the_queries_of_the_type() -> None:
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"z": 1}})
    lists = {"q1": {"b": 2.0, "c": 1.0}, "q2": {"b": 2.0, "c": 1.0}}
    runs = align(
        qrels,
        [
            Run.from_dict("dense", {q: {"a": 3.0, "b": 2.0} for q in lists}, roles=ROLES["dense"]),
            Run.from_dict("bm25", lists, roles=ROLES["bm25"]),
        ],
        queries={
            "q1": Query("q1", type="local", confidence=1.0),
            "q2": Query("q2", type="global", confidence=1.0),
        },
    )
    weights = {
        "local": {"question": 1.0, "keyword": 0.0},
        "global": {"question": 0.0, "keyword": 1.0},
        "hybrid": {"question": 0.5, "keyword": 0.5},
    }
    system = System.model_validate(
        {"name": "s", "runs": ["dense", "bm25"], "weights_by_type": weights}
    )
    stages = rank_stages(system, runs)
    assert stages.has_question.tolist() == [True, False, True]
    relevant, failures = diagnose(runs, qrels, system)
    assert listed(runs, relevant, failures["dilution"]) == {}
    assert list(listed(runs, relevant, failures["miss"])) == [("q2", "a"), ("q3", "z")]
