"""Azure AI Search's numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fusion_bench.engines.dialects.search_servers import AzureAISearch
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {"bm25": {"q": {"a": 9.0, "b": 8.0}}, "dense": {"q": {"a": 0.9, "c": 0.8}}}


def system(*runs: str, **fusion: object) -> System:
    return System("s", runs, dialect="azure", fusion=fusion)


def test_the_published_score_counts_ranks_from_zero() -> None:
    """The first document of both searches has 0.03333333507180214 = 2/60 in 32 bits.

    https://learn.microsoft.com/en-us/azure/search/hybrid-search-how-to-query, the response there.
    """
    fused = scores(system("bm25", "dense"), LISTS)
    assert float(np.float32(fused["a"])) == 0.03333333507180214
    assert fused["b"] == pytest.approx(1 / 61)


def test_the_text_query_weighs_one() -> None:
    fused = scores(system("bm25", "dense", weights={"dense": 0.5}), LISTS)
    assert fused == pytest.approx({"a": 1.5 / 60, "b": 1 / 61, "c": 0.5 / 61})
    for weights in ({"bm25": 2.0}, {"keyword": 0.5}):
        ((_, error), *_) = system("bm25", "dense", weights=weights).find_misfits(ROLES, [])
        assert "weighs 1" in str(error)


def test_one_text_query_is_fused() -> None:
    roles = dict.fromkeys(("bm25", "title"), frozenset({"keyword"}))
    assert AzureAISearch.translate(System("s", list(roles)), roles).fidelity == "unsupported"
    two = System("s", list(roles), dialect="azure", fusion={"text": "title"})
    assert not [*two.find_misfits(roles, [])]


def test_what_is_written() -> None:
    ours = System(
        "s",
        ["bm25", "dense", "hyde"],
        {"method": "rrf", "k": 59, "weights": {"bm25": 2.0}},
        depth={"bm25": 200, "dense": 40, "hyde": 40},
        top_k=10,
    )
    translation = AzureAISearch.translate(ours, ROLES)
    assert (translation.fidelity, translation.reasons) == ("exact", ())
    assert translation.system is not None
    request = json.loads(AzureAISearch.write(translation.system).files["search.json"])
    assert request["hybridSearch"] == {"maxTextRecallSize": 200}
    assert [(q["fields"], q["k"], q["weight"]) for q in request["vectorQueries"]] == [
        ("dense", 40, 0.5),
        ("hyde", 40, 0.5),
    ]
    assert AzureAISearch.translate(System("s", ["bm25", "dense"]), ROLES).fidelity == "approximate"
