"""Rerankers of engines: blends that are part of a dialect, and steps of a search request.

qmd from test/store.test.ts and src/store.ts of tobi/qmd (2.8); ADR-005 and CONV-07-05 (5.1, 5.2)
by hand from their code.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.engines.dialects.elasticsearch import Elasticsearch
from fusion_bench.engines.dialects.opensearch import OpenSearch
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.engines.cases import ROLES, Lists, scores
from tests.engines.reading import read_system

RANKED = {f"d{n:02}": 1.0 - n / 100 for n in range(1, 16)}
LISTS: Lists = {
    "dense": {"q": RANKED},
    "bm25": {"q": {"a": 0.9, "d07": 0.8}},
    "hyde": {"q": {"e": 0.6, "d02": 0.5}},
}
RERANK = {name: n % 5 / 5 + n / 1000 for n, name in enumerate([*RANKED, "a", "e"])}


def final_scores(
    system: System,
    lists: Lists,
    rerank: Mapping[str, float] = RERANK,
    ties: Ties | None = None,
) -> dict[str, float]:
    """Document → final score, best first; rerank scores are on the unit scale."""
    runs = align(
        Qrels.from_dict({"q": {"a": 1}}),
        [Run.from_dict(n, dict(lists[n]), roles=ROLES[n]) for n in system.runs],
        rerankers=[Run.from_dict("ce", {"q": dict(rerank)})],
        spaces={"ce": "unit"},
        ties=ties or "trec",
    )
    ranking = rank_candidates(system, runs)
    rows = np.flatnonzero(ranking.positions > 0)
    rows = rows[np.argsort(ranking.positions[rows])]
    view = ranking.runs
    return {view.vocabulary[view.documents[n]]: float(ranking.scores[n]) for n in rows}


def build(engine: str, runs: tuple[str, ...] = ("bm25", "dense"), **settings: Any) -> System:  # noqa: ANN401 - of any system
    return System("s", runs, dialect=engine, **settings)


@pytest.mark.parametrize(
    ("rank", "rerank", "expected"),
    [(1, 0, 0.75), (2, 1, 0.625), (3, 1, 0.5), (4, 1, 0.55), (10, 1, 0.46), (11, 1, 0.6363636364)],
)
def test_qmd_blends_by_fused_rank(rank: int, rerank: float, expected: float) -> None:
    """``w * (1 / rrfRank) + (1 - w) * rerankScore``; w by rank: ≤ 3 .75, ≤ 10 .60, else .40."""
    lists = {"dense": {"q": RANKED}, "bm25": {"q": RANKED}}
    document = f"d{rank:02}"
    given = {**dict.fromkeys(RANKED, 0.0), document: float(rerank)}
    blended = final_scores(build("qmd", blend={"reranker": "ce"}, top_k=None), lists, given)
    assert blended[document] == pytest.approx(expected)


def test_defaults_of_a_blend_of_qmd() -> None:
    blend = build("qmd", blend={"reranker": "ce"}).blend.model_dump()
    assert (blend["method"], blend["retrieval"]) == ("position_aware", "reciprocal_rank")
    assert (blend["depth"], blend["tail"]) == (40, "drop")
    other = build("qmd", blend={"method": "replace", "reranker": "ce"}).blend.model_dump()
    assert (other["method"], other["depth"]) == ("replace", 50)


def test_blends_of_adr_005_and_their_switch() -> None:
    """Shares .75 up to rank 2, .60 up to 9, .40 beyond, of ranks from 0."""
    fused = scores(build("adr-005", tuple(LISTS)), LISTS)
    blended = final_scores(build("adr-005", tuple(LISTS), blend={"reranker": "ce"}), LISTS)
    for share, place in ((0.75, 0), (0.6, 4), (0.4, 12)):
        name = [*fused][place]
        assert blended[name] == pytest.approx(share * fused[name] + (1 - share) * RERANK[name])
    assert max(blended, key=RERANK.__getitem__) == next(iter(blended))  # the other hardly counts
    plain = replace_v2(build("adr-005", tuple(LISTS), blend={"reranker": "ce"}))
    assert (plain.fusion.method, plain.blend.method) == ("rrf", "replace")
    again = System.model_validate(plain.model_dump(mode="json"))
    assert final_scores(again, LISTS) == final_scores(plain, LISTS)
    assert replace_v2(build("qmd")) == build("qmd")


def test_conv_replaces_and_skips_few_candidates() -> None:
    """LLMReranker: ``candidates.length <= limit && !alwaysRerank`` keeps the fused order."""
    lists = {"bm25": {"q": {f"d{n}": 9.0 - n for n in range(4)}}}
    rerank = {f"d{n}": n / 10 for n in range(4)}
    few = build("conv-07-05", ("bm25",), blend={"reranker": "ce"}, top_k=20)
    assert [*final_scores(few, lists, rerank)] == ["d0", "d1", "d2", "d3"]
    many = build("conv-07-05", ("bm25",), blend={"reranker": "ce", "skip_limit": 3}, top_k=3)
    assert [*final_scores(many, lists, rerank)] == ["d3", "d2", "d1"]


POSITION = {"method": "position_aware", "reranker": "ce", "retrieval": "reciprocal_rank"}
FUSED = {**POSITION, "retrieval": "fused", "tail": "drop"}
REPLACED = {"method": "replace", "reranker": "ce", "tail": "drop"}
LINEAR = {"method": "linear", "reranker": "ce", "beta": 0.7}
NONE = {"method": "none"}
BONUS = {"method": "rrf_v2", "bonus": {1: 0.1}, "k": 20}
SKIPPING = {**REPLACED, "always_rerank": False, "skip_limit": 5}


@pytest.mark.parametrize(
    ("engine", "fusion", "blend", "fidelity", "reason", "method"),
    [
        ("qmd", "rrf_v2", {**POSITION, "tail": "drop"}, "exact", "", ""),
        ("qmd", "rrf_v2", REPLACED, "exact", "", ""),
        ("qmd", "rrf_v2", POSITION, "approximate", "blend.tail", ""),
        ("qmd", "rrf_v2", {**POSITION, "missing": "zero"}, "approximate", "blend.missing", ""),
        ("qmd", "rrf_v2", FUSED, "approximate", "blend.retrieval", ""),
        ("qmd", "rrf", NONE, "approximate", "bonus", ""),
        ("qmd", {"method": "rrf_v2", "bonus_scope": "per_source"}, NONE, "approximate", "sco", ""),
        ("qmd", "convex", NONE, "unsupported", "fusion", ""),
        ("adr-005", "rrf_v2", FUSED, "exact", "", "rrf_v2"),
        ("adr-005", BONUS, FUSED, "exact", "", "rrf_v2"),
        ("adr-005", {"method": "rrf_v2", "bonus_unit": "relative"}, FUSED, "exact", "", "rrf_v2"),
        (
            "adr-005",
            {"method": "rrf_v2", "normalize": "max_possible"},
            FUSED,
            "approximate",
            "normalize",
            "rrf_v2",
        ),
        ("adr-005", "rrf_v2", REPLACED, "exact", "", "rrf_v2"),
        ("adr-005", "rrf_v2", {**LINEAR, "retrieval": "fused", "tail": "drop"}, "exact", "",
         "rrf_v2"),
        ("adr-005", "rrf_v2", {**FUSED, "retrieval": "reciprocal_rank"}, "approximate",
         "blend.retrieval", "rrf_v2"),
        ("adr-005", "rrf", REPLACED, "approximate", "blend", "rrf"),  # beyond its depth all is kept
        ("adr-005", "rrf", NONE, "exact", "", "rrf"),
        ("adr-005", {"method": "rrf", "weights": {"hyde": 0.5}}, FUSED, "exact", "", "rrf_v2"),
        ("adr-005", "rrf", FUSED, "exact", "", "rrf_v2"),
        ("conv-07-05", {"method": "rrf", "normalize": "three_lists"}, NONE, "rank-equivalent",
         "thr", ""),
        ("conv-07-05", {"method": "rrf", "weights": {"semantic": 2.0}}, NONE, "exact", "", ""),
        ("conv-07-05", "weighted_score", NONE, "exact", "", ""),
        ("conv-07-05", "rrf", REPLACED, "exact", "", ""),
        ("conv-07-05", "rrf", SKIPPING, "approximate", "skip_limit", ""),
        ("conv-07-05", "rrf", {**REPLACED, "min_score": 0.1}, "approximate", "blend.min_score",
         ""),
        ("conv-07-05", "rrf", LINEAR, "approximate", "blend", ""),
        ("conv-07-05", "convex", NONE, "unsupported", "normalize", ""),
        ("conv-07-05", {"method": "rrf", "k": 0}, NONE, "approximate", "k:", ""),
    ],
)  # fmt: skip
def test_a_blend_is_translated_and_read_back(
    engine: str,
    fusion: Any,  # noqa: ANN401 - as YAML says it
    blend: Mapping[str, Any],
    fidelity: str,
    reason: str,
    method: str,
) -> None:
    runs = [*LISTS] if engine == "adr-005" else ["dense", "bm25"]
    top_k = 3 if engine == "conv-07-05" else 10
    ours = System("s", runs, fusion, blend, depth=20, top_k=top_k)
    dialect = dialects.find_plugin(engine)
    translation = dialect.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    assert any(reason in text for text in translation.reasons) == bool(reason)
    if translation.system is None:
        return
    files = dialect.write(translation.system).files
    again = read_system(dialect, files)
    assert final_scores(again, LISTS) == final_scores(translation.system, LISTS)
    if fidelity == "exact":
        ties = translation.system.fusion.ties  # an engine breaks ties by a rule of its own
        assert [*final_scores(again, LISTS)] == [*final_scores(ours, LISTS, ties=ties)]
    if fidelity == "exact" and engine != "conv-07-05":  # whose scores are on another scale
        assert final_scores(again, LISTS) == pytest.approx(final_scores(ours, LISTS))
    if method:
        assert translation.system.fusion.method == method
        is_v2 = json.dumps(method == "rrf_v2")
        assert files[".env"] == f"RAG_FUSION_V2_ENABLED={is_v2}\n"


STEP: Mapping[str, Any] = {
    "method": "replace",
    "reranker": "ce",
    "depth": 30,
    "missing": "below",
    "tail": "drop",
}


def write_step(dialect: type[Dialect]) -> tuple[System, System, Mapping[str, str]]:
    """A system with a reranking step, what the engine's is, and its files by role."""
    system = System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10, blend=dict(STEP))
    translation = dialect.translate(system, ROLES)
    assert translation.fidelity == "rank-equivalent"
    assert translation.system is not None
    files = dialect.write_by_role(translation.system, ROLES).files
    again = read_system(dialect, files)
    assert (again.depth, again.top_k) == (60, 10)
    assert again.blend == translation.system.blend
    return system, again, files


def test_elasticsearch_searches_by_role_and_reranks_by_text_similarity() -> None:
    system, again, files = write_step(Elasticsearch)
    request = json.loads(files["search.json"])
    step = request["retriever"]["text_similarity_reranker"]
    assert (step["inference_id"], step["rank_window_size"], request["size"]) == ("ce", 30, 10)
    rrf = step["retriever"]["rrf"]
    assert rrf["rank_window_size"] == 60
    bm25, dense = (entry["retriever"] for entry in rrf["retrievers"])
    assert bm25["standard"]["query"] == {"match": {"FIELD": {"query": "QUERY"}}}
    assert dense["knn"] == {
        "_name": "dense",
        "field": "VECTOR_FIELD",
        "query_vector": "QUERY_VECTOR",
        "k": 60,
        "num_candidates": 120,
    }
    lists = {
        "bm25": {"q": {f"d{i:02}": 50.0 - i for i in range(40)}},
        "dense": {"q": {f"d{i:02}": 1 - (i * 7 % 40) / 40 for i in range(40)}},
    }
    rerank = {f"d{i:02}": (i * 11 % 40) / 40 for i in range(40)}
    assert [*final_scores(again, lists, rerank)] == [*final_scores(system, lists, rerank)]


def test_opensearch_searches_by_role_and_reranks_by_a_processor() -> None:
    _, _, files = write_step(OpenSearch)
    request = json.loads(files["search.json"])
    bm25, dense = request["query"]["hybrid"]["queries"]
    assert bm25 == {"match": {"FIELD": {"query": "QUERY", "_name": "bm25"}}}
    vector = {"vector": "QUERY_VECTOR", "k": 60, "_name": "dense"}
    assert dense == {"knn": {"VECTOR_FIELD": vector}}
    assert request["size"] == 30  # what the processor reranks
    assert request["ext"]["rerank"]["query_context"] == {"query_text": "QUERY"}
    rerank, cut = json.loads(files["search-pipeline.json"])["response_processors"]
    assert rerank["rerank"]["ml_opensearch"] == {"model_id": "ce"}
    assert cut == {"truncate_hits": {"target_size": 10}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"depth": 100}, "blend.depth: 60 instead"),
        ({"min_score": 0.1}, "blend.min_score: 0.1"),
        ({"always_rerank": False}, "always_rerank"),
        ({"tail": "keep", "depth": 5}, "beyond 5"),
    ],
)
@pytest.mark.parametrize("dialect", [Elasticsearch, OpenSearch])
def test_what_a_reranking_step_cannot_do(
    dialect: type[Dialect], changes: Mapping[str, Any], reason: str
) -> None:
    system = System("s", ["bm25", "dense"], "rrf", depth=60, top_k=10, blend={**STEP, **changes})
    translation = dialect.translate(system, ROLES)
    assert translation.fidelity == "approximate"
    assert any(reason in text for text in translation.reasons)
    assert translation.system is not None
    assert dialect.translate(translation.system, ROLES).fidelity == "exact"
    kept = Replace(**{**STEP, "tail": "keep"})
    with pytest.raises(ConfigError, match="translate it first"):
        dialect.write(translation.system.model_copy(update={"blend": kept}))
