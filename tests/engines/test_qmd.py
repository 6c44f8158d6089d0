"""qmd's numbers, from test/store.test.ts of tobi/qmd (2.8) and by hand from src/store.ts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.rank_bonus import Qmd
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System
from tests.engines.blend_cases import final_scores
from tests.engines.cases import ROLES, scores

RANKED = {f"d{n:02}": 1.0 - n / 100 for n in range(1, 16)}


def system(**settings: Any) -> System:  # noqa: ANN401 - of any system
    return System("s", ["bm25", "dense"], **{"dialect": "qmd", **settings})


def test_top_rank_bonus() -> None:
    """ "doc1 should get +0.05 bonus for being #1, doc2 +0.02 for being #2-3"; weights 1."""
    lists = {"bm25": {"q": {"doc1": 0.9, "doc2": 0.8}}, "dense": {"q": {"doc3": 0.85}}}
    fused = scores(system(fusion={"weights": {}}), lists)
    assert fused == pytest.approx(
        {"doc3": 1 / 61 + 0.05, "doc1": 1 / 61 + 0.05, "doc2": 1 / 62 + 0.02}
    )


def test_lists_of_the_original_query_weigh_2() -> None:
    """ "hybrid RRF weights boost original vector evidence …": weights [2, 1, 2] by query type."""
    lists = {
        "bm25": {"q": {"fts": 0.95}},
        "hyde": {"q": {"lex": 0.95}},
        "dense": {"q": {"vec": 0.95}},
    }
    fusion = {"weights": {"bm25": 2.0, "question": 2.0}}
    fused = scores(System("s", list(lists), dialect="qmd", fusion=fusion), lists)
    assert fused == pytest.approx(
        {"vec": 2 / 61 + 0.05, "fts": 2 / 61 + 0.05, "lex": 1 / 61 + 0.05}
    )
    assert list(fused)[-1] == "lex"


@pytest.mark.parametrize(
    ("rank", "rerank", "expected"),
    [(1, 0, 0.75), (2, 1, 0.625), (3, 1, 0.5), (4, 1, 0.55), (10, 1, 0.46), (11, 1, 0.6363636364)],
)
def test_blend_by_fused_rank(rank: int, rerank: float, expected: float) -> None:
    """``w * (1 / rrfRank) + (1 - w) * rerankScore``; w by rank: ≤ 3 .75, ≤ 10 .60, else .40."""
    lists = {"dense": {"q": RANKED}, "bm25": {"q": RANKED}}
    document = f"d{rank:02}"
    zeros = dict.fromkeys(RANKED, 0.0)
    blended = final_scores(
        system(blend={"reranker": "ce"}, top_k=None), lists, {**zeros, document: float(rerank)}
    )
    assert blended[document] == pytest.approx(expected)


def test_defaults_of_a_blend() -> None:
    blend = system(blend={"reranker": "ce"}).blend.model_dump()
    assert (blend["method"], blend["retrieval"]) == ("position_aware", "reciprocal_rank")
    assert (blend["depth"], blend["tail"]) == (40, "drop")
    other = system(blend={"method": "replace", "reranker": "ce"}).blend.model_dump()
    assert (other["method"], other["depth"]) == ("replace", 50)


POSITION = {"method": "position_aware", "reranker": "ce", "retrieval": "reciprocal_rank"}


@pytest.mark.parametrize(
    ("fusion", "blend", "fidelity", "reason"),
    [
        ("rrf_v2", {**POSITION, "tail": "drop"}, "exact", ""),
        ("rrf_v2", {"method": "replace", "reranker": "ce", "tail": "drop"}, "exact", ""),
        ("rrf_v2", POSITION, "approximate", "blend.tail"),
        ("rrf_v2", {**POSITION, "missing": "zero"}, "approximate", "blend.missing"),
        ("rrf_v2", {**POSITION, "retrieval": "fused"}, "approximate", "blend.retrieval"),
        ("rrf", {"method": "none"}, "approximate", "bonus"),
        (
            {"method": "rrf_v2", "bonus_scope": "per_source"},
            {"method": "none"},
            "approximate",
            "sco",
        ),
        ("convex", {"method": "none"}, "unsupported", "fusion"),
    ],
)
def test_what_is_lost(
    fusion: Any,  # noqa: ANN401 - as YAML says it
    blend: Mapping[str, Any],
    fidelity: str,
    reason: str,
) -> None:
    ours = System("s", ["bm25", "dense"], fusion, blend, depth=20, top_k=10)
    translation = Qmd.translate(ours, ROLES)
    assert translation.fidelity == fidelity
    assert any(reason in text for text in translation.reasons) == bool(reason)
    if translation.system is None:
        return
    again = System.model_validate({"name": "s", **Qmd.read(Qmd.write(translation.system).files)})
    lists = {"dense": {"q": RANKED}, "bm25": {"q": {"a": 2.0, "d07": 1.0}}}
    rerank = {name: n % 5 / 5 for n, name in enumerate({**RANKED, "a": 0})}
    assert final_scores(again, lists, rerank) == final_scores(translation.system, lists, rerank)
    if fidelity == "exact":
        expected = final_scores(ours, lists, rerank)
        assert final_scores(again, lists, rerank) == pytest.approx(expected)


def test_what_cannot_be_written() -> None:
    for settings in (
        {"fusion": {"bonus": {1: 0.1}}},
        {"fusion": {"bonus_unit": "relative"}},
        {"blend": {"reranker": "ce", "missing": "zero"}},
    ):
        with pytest.raises(ConfigError):
            Qmd.write(system(**settings))


def test_the_switch_of_v2_does_not_concern_it() -> None:
    assert replace_v2(system()) == system()
