"""Manticore Search's numbers, by hand from the formula of its manual.

https://manual.manticoresearch.com/Searching/Hybrid_search (August 2026):
weight_r / (rank_constant + rank_r(d)), "1-based position", no contribution if it is missing.
"""

from __future__ import annotations

import json

import pytest

from fusion_bench.engines.dialects.search_servers import Manticore
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores

LISTS = {
    "bm25": {"q": {"a": 9.0, "b": 8.0}},
    "dense": {"q": {"b": 0.9, "c": 0.8}},
}


def test_rrf() -> None:
    fusion = {"rank_constant": 10, "weights": {"bm25": 0.7, "dense": 0.3}}
    fused = scores(System("s", ["bm25", "dense"], dialect="manticore", fusion=fusion), LISTS)
    assert fused == pytest.approx({"b": 0.7 / 12 + 0.3 / 11, "a": 0.7 / 11, "c": 0.3 / 12})


def test_what_is_written() -> None:
    ours = System("s", ["dense", "bm25"], {"method": "rrf", "weights": {"dense": 2}}, depth=50)
    translation = Manticore.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    request = json.loads(Manticore.write(translation.system).files["search.json"])
    assert [search["name"] for search in request["knn"]] == ["dense"]
    assert request["options"]["fusion_weights"] == {"dense": 2.0, "query": 1.0}
    assert request["options"]["window_size"] == 50
    assert request["options"]["rank_constant"] == 60


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ({"a": "keyword", "b": "keyword"}, "at most one full-text search"),
        ({"query": "semantic", "b": "keyword"}, "may be called 'query'"),
        ({"a": "keyword"}, "two or more"),
    ],
)
def test_what_cannot_be_said(runs: dict[str, str], reason: str) -> None:
    roles = {name: frozenset({role}) for name, role in runs.items()}
    translation = Manticore.translate(System("s", list(runs), "rrf"), roles)
    assert translation.fidelity == "unsupported"
    assert reason in translation.reasons[-1]


def test_the_full_text_search_must_be_a_run() -> None:
    system = System("s", ["a", "b"], dialect="manticore", fusion={"text": "c"})
    with pytest.raises(ConfigError, match="of its runs"):
        Manticore.write(system)
